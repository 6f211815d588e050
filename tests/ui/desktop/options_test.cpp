// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/options.h"

#include <gtest/gtest.h>

#include <vector>

namespace stagecraft::desktop {
namespace {

std::variant<WindowCommand, RenderCommand, PlotCommand, Done> read(std::vector<std::string> arguments)
{
    std::vector<char*> pointers;
    arguments.insert(arguments.begin(), "stagecraft");
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    return readCommandLine(static_cast<int>(pointers.size()), pointers.data());
}

int refused(const std::vector<std::string>& arguments)
{
    const auto command = read(arguments);
    const auto* done = std::get_if<Done>(&command);
    return done ? done->exitCode : -1;
}

TEST(DesktopOptions, OpenAWindowByThemselves)
{
    const auto command = std::get<WindowCommand>(read({}));
    EXPECT_TRUE(command.plan.isEmpty());
    EXPECT_TRUE(command.screenshot.isEmpty());
    EXPECT_EQ(command.size, QSize(1280, 800));
    EXPECT_FALSE(command.theme);
    EXPECT_FALSE(command.run);
    EXPECT_FALSE(command.at.step);
}

TEST(DesktopOptions, NamePlanThemeAndPicture)
{
    const auto command = std::get<WindowCommand>(read({"--plan", "mlp", "--theme", "dark", "--screenshot", "out.png", "--size", "1920x1080",
                                                       "--run", "--use-measured", "--screenshot-at", "step:3"}));
    EXPECT_EQ(command.plan, "mlp");
    EXPECT_EQ(command.theme, ui::ThemeKind::Dark);
    EXPECT_EQ(command.screenshot, "out.png");
    EXPECT_EQ(command.size, QSize(1920, 1080));
    EXPECT_TRUE(command.run);
    EXPECT_TRUE(command.useMeasured);
    EXPECT_EQ(command.at.step, 3);
}

TEST(DesktopOptions, OpenAWindowBeside)
{
    EXPECT_EQ(std::get<WindowCommand>(read({"--show", "curves"})).show, ui::ExploreWindow::Curves);
    EXPECT_FALSE(std::get<WindowCommand>(read({})).show);
}

TEST(DesktopOptions, BringTheStatisticsToTheFront)
{
    EXPECT_TRUE(std::get<WindowCommand>(read({"--statistics", "--run"})).statistics);
    EXPECT_FALSE(std::get<WindowCommand>(read({})).statistics);
}

TEST(DesktopOptions, DrawCurves)
{
    const auto command = std::get<PlotCommand>(read({"plot", "-", "curves.svg", "--figure", "bubble_span,makespan_ns", "--theme", "dark"}));
    EXPECT_EQ(command.sweep, "-");
    EXPECT_EQ(command.out, "curves.svg");
    EXPECT_EQ(command.figures, (std::vector{engine::SweepFigure::BubbleSpan, engine::SweepFigure::StepTime}));
    EXPECT_EQ(command.theme, ui::ThemeKind::Dark);
}

TEST(DesktopOptions, DrawATimeline)
{
    const auto command = std::get<RenderCommand>(read({"render", "hello", "out.svg", "--theme", "light", "--width", "900"}));
    EXPECT_EQ(command.source, "hello");
    EXPECT_EQ(command.out, "out.svg");
    EXPECT_EQ(command.theme, ui::ThemeKind::Light);
    EXPECT_EQ(command.width, 900);
}

TEST(DesktopOptions, RefuseWhatIsNotAllowedWithExitCode2)
{
    const std::vector<std::vector<std::string>> wrong{
        {"--theme", "blue"},
        {"--size", "1280"},
        {"--size", "1280x"},
        {"--size", "100x100"},
        {"--size", "99999x800"},
        {"--trace", "/no/such/trace"},
        {"--use-measured"},                                                   // without --run
        {"--run", "--screenshot-at", "step:1"},                               // without --screenshot
        {"--screenshot", "out.png", "--screenshot-at", "end"},                // without --run
        {"--run", "--screenshot", "out.png", "--screenshot-at", "step:-1"},
        {"--run", "--screenshot", "out.png", "--screenshot-at", "soon"},
        {"--nonsense"},
        {"render", "hello"},
        {"render", "hello", "out.png", "--width", "10"},
        {"--show", "lab"},
        {"--show", "curves", "--run"},
        {"plot", "sweep.json"},
        {"plot", "-", "out.png", "--figure", "colour"},
    };
    for (const auto& arguments : wrong) EXPECT_EQ(refused(arguments), 2) << arguments.front() << " " << arguments.back();
}

TEST(DesktopOptions, EndAfterHelpAndVersion)
{
    EXPECT_EQ(refused({"--help"}), 0);
    EXPECT_EQ(refused({"--version"}), 0);
    EXPECT_EQ(refused({"render", "--help"}), 0);
}

} // namespace
} // namespace stagecraft::desktop
