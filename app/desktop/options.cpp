// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/options.h"

#include "ui/bridge/text.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <filesystem>
#include <map>

namespace stagecraft::desktop {
namespace {

constexpr int kWrongUse = 2;
constexpr int kMostPixels = 16384;

std::optional<int> wholeNumber(std::string_view text)
{
    int value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<QSize> sizeOf(const std::string& text)
{
    const auto cross = text.find('x');
    if (cross == std::string::npos) return std::nullopt;
    const auto width = wholeNumber(std::string_view(text).substr(0, cross));
    const auto height = wholeNumber(std::string_view(text).substr(cross + 1));
    if (!width || !height || *width < 320 || *height < 240 || *width > kMostPixels || *height > kMostPixels) return std::nullopt;
    return QSize(*width, *height);
}

std::optional<PictureTime> pictureTimeOf(const std::string& text)
{
    if (text == "end") return PictureTime{};
    if (!text.starts_with("step:")) return std::nullopt;
    const auto step = wholeNumber(std::string_view(text).substr(5));
    if (!step || *step < 0) return std::nullopt;
    return PictureTime{*step};
}

CLI::Validator checkedBy(bool (*good)(const std::string&), const std::string& what)
{
    return CLI::Validator([good, what](std::string& text) { return good(text) ? std::string() : "\"" + text + "\" is not allowed; " + what; }, "");
}

} // namespace

std::string calledName(const char* argument)
{
    const std::string name = std::filesystem::path(argument ? argument : "").filename().string();
    return name == "stagecraft-cli" ? name : "stagecraft";
}

std::variant<WindowCommand, RenderCommand, PlotCommand, Done> readCommandLine(int argc, char** argv)
{
    CLI::App program("Stagecraft: plan a pipeline, simulate it, run it, watch it", calledName(argc > 0 ? argv[0] : nullptr));
    program.set_version_flag("--version", "stagecraft " STAGECRAFT_VERSION);
    program.footer("Example: stagecraft --plan gpt-small --run --screenshot window.png --screenshot-at step:2");

    const std::map<std::string, ui::ThemeKind> themes{{"light", ui::ThemeKind::Light}, {"dark", ui::ThemeKind::Dark}};
    std::string plan;
    std::string trace;
    std::string theme;
    std::string screenshot;
    std::string size = "1280x800";
    std::string at = "end";
    std::string show;
    bool statistics = false;
    bool run = false;
    bool useMeasured = false;
    program.add_option("--plan", plan, "Plan file, or the name of a preset");
    program.add_option("--trace", trace, "Trace file to show")->check(CLI::ExistingFile);
    program.add_option("--theme", theme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
    CLI::Option* picture = program.add_option("--screenshot", screenshot, "Draw the window into this PNG file and end; needs no display")
                              ->check(checkedBy([](const std::string& text) { return ui::toQt(text).endsWith(".png", Qt::CaseInsensitive); },
                                                "a screenshot is written as .png"));
    program.add_option("--size", size, "Size of the window, such as 1280x800")
        ->check(checkedBy([](const std::string& text) { return sizeOf(text).has_value(); }, "write WIDTHxHEIGHT, 320x240 to 16384x16384"));
    const std::map<std::string, ui::ExploreWindow> beside{
        {"gallery", ui::ExploreWindow::Gallery}, {"curves", ui::ExploreWindow::Curves}, {"comparison", ui::ExploreWindow::Comparison},
        {"what-if", ui::ExploreWindow::WhatIf}};
    CLI::Option* shows = program.add_option("--show", show, "Open one of the windows beside: gallery, curves, comparison or what-if; a screenshot is of that one")
                             ->check(CLI::IsMember({"gallery", "curves", "comparison", "what-if"}));
    program.add_flag("--statistics", statistics, "Bring the panel to the front that tells how long actions take");
    CLI::Option* runs = program.add_flag("--run", run, "Run the plan at once");
    runs->excludes(shows);
    program.add_flag("--use-measured", useMeasured, "After the run take its times over as costs and lay the new simulation over it")
        ->needs(runs);
    program.add_option("--screenshot-at", at, "With --run: step:K (in the midst of step K, from 0) or end")
        ->check(checkedBy([](const std::string& text) { return pictureTimeOf(text).has_value(); }, "write step:K or end"))
        ->needs(picture)
        ->needs(runs);

    CLI::App* render = program.add_subcommand("render", "Draw the timeline of a plan or trace into a picture; needs no display");
    render->footer("Example: stagecraft render gpt-small timeline.svg");
    std::string source;
    std::string out;
    std::string renderTheme;
    std::string from;
    std::string to;
    RenderCommand drawn;
    render->add_option("SOURCE", source, "Plan file, preset or trace")->required();
    render->add_option("OUT", out, "Picture to write: .png, .svg or .pdf")->required();
    render->add_option("--theme", renderTheme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
    render->add_option("--width", drawn.width, "Width of the picture")->check(CLI::Range(400, kMostPixels));
    render->add_option("--scale", drawn.scale, "Pixels of a PNG per unit of its width; 2, or less where that is too large")
        ->check(CLI::Range(0.25, 8.0));
    render->add_option("--step", drawn.step, "Draw this step alone, from 0")
        ->check(checkedBy([](const std::string& text) { return wholeNumber(text).value_or(-1) >= 0; }, "write a step's number, from 0"));
    const CLI::Validator time = checkedBy([](const std::string& text) { return traces::parseDuration(text).ok(); }, "write a time such as 1.5ms");
    render->add_option("--from", from, "Leave out what is before this time, counted from the start of the step, or of all")->check(time);
    render->add_option("--to", to, "Leave out what is after this time")->check(time);

    CLI::App* plot = program.add_subcommand("plot", "Draw the curves of a sweep into a picture; needs no display");
    plot->footer("Example: stagecraft-cli sweep --over microbatches=1..64*2 --json | stagecraft plot - bubble.svg --figure bubble_makespan");
    std::map<std::string, engine::SweepFigure> figures;
    std::vector<std::string> figureKeys;
    for (const engine::SweepFigureInfo& info : engine::sweepFigures()) {
        figures.emplace(info.key, info.figure);
        figureKeys.emplace_back(info.key);
    }
    std::string sweep;
    std::string plotOut;
    std::string plotTheme;
    std::vector<std::string> figureNames;
    PlotCommand curves;
    plot->add_option("SWEEP", sweep, "File that stagecraft-cli sweep --json wrote; - for standard input")->required();
    plot->add_option("OUT", plotOut, "Picture to write: .png, .svg or .pdf")->required();
    plot->add_option("--figure", figureNames, "Draw this figure alone, or several; four of them unless given")
        ->delimiter(',')
        ->check(CLI::IsMember(figureKeys));
    plot->add_option("--theme", plotTheme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
    plot->add_option("--width", curves.width, "Width of the picture")->check(CLI::Range(400, kMostPixels));

    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& end) {
        return Done{program.exit(end) == 0 ? 0 : kWrongUse};
    }
    const auto themeOf = [&](const std::string& name) {
        return name.empty() ? std::optional<ui::ThemeKind>() : themes.at(name);
    };
    if (render->parsed()) {
        drawn.source = ui::toQt(source);
        drawn.out = ui::toQt(out);
        drawn.theme = themeOf(renderTheme);
        if (!from.empty()) drawn.from = traces::parseDuration(from).value();
        if (!to.empty()) drawn.to = traces::parseDuration(to).value();
        return drawn;
    }
    if (plot->parsed()) {
        curves.sweep = ui::toQt(sweep);
        curves.out = ui::toQt(plotOut);
        curves.theme = themeOf(plotTheme);
        for (const std::string& name : figureNames) curves.figures.push_back(figures.at(name));
        return curves;
    }
    const auto shown = show.empty() ? std::optional<ui::ExploreWindow>() : beside.at(show);
    return WindowCommand{ui::toQt(plan), ui::toQt(trace), themeOf(theme), ui::toQt(screenshot), *sizeOf(size), shown, statistics, run, useMeasured, *pictureTimeOf(at)};
}

} // namespace stagecraft::desktop
