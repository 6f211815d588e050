// SPDX-License-Identifier: GPL-3.0-or-later
//
// The built program, started as a user starts it, without a display.
#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/window/simulation_controller.h"

#include <QImage>
#include <QProcess>
#include <QTemporaryDir>

#include <gmock/gmock.h>

namespace stagecraft::desktop {
namespace {

class DesktopProgram : public testing::Test {
protected:
    struct Ended {
        int exitCode = -1;
        std::string errors;
    };

    Ended start(const QStringList& arguments)
    {
        QProcess program;
        program.start(STAGECRAFT_PROGRAM, arguments);
        if (!program.waitForFinished(120'000) || program.exitStatus() != QProcess::NormalExit) return {};
        return {program.exitCode(), program.readAllStandardError().toStdString()};
    }
    QString picture() const { return folder.filePath("window.png"); }
    QImage pictureOf(const QStringList& arguments)
    {
        const Ended ended = start(QStringList{"--screenshot", picture()} + arguments);
        EXPECT_EQ(ended.exitCode, 0) << ended.errors;
        EXPECT_EQ(ended.errors, "");
        return QImage(picture());
    }

    QTemporaryDir folder;
};

TEST_F(DesktopProgram, DrawsItsWindowWithoutADisplay)
{
    const QImage light = pictureOf({"--plan", "mlp", "--size", "900x700", "--theme", "light"});
    EXPECT_EQ(light.size(), QSize(900, 700));
    const QImage dark = pictureOf({"--plan", "mlp", "--size", "900x700", "--theme", "dark"});
    EXPECT_GT(light.pixelColor(450, 2).lightness(), 180); // the menu bar
    EXPECT_LT(dark.pixelColor(450, 2).lightness(), 90);
}

// Not before they have been worked out.
TEST_F(DesktopProgram, DrawsTheStatisticsOnceTheyAreThere)
{
    const auto figures = [](const QImage& window) { return window.copy(930, 150, 340, 60); }; // the first rows of the table
    const QImage mlp = figures(pictureOf({"--plan", "mlp", "--statistics", "--theme", "light"}));
    EXPECT_NE(mlp, figures(pictureOf({"--plan", "hello", "--statistics", "--theme", "light"})));
    EXPECT_NE(mlp, figures(pictureOf({"--plan", "mlp", "--theme", "light"})));
    EXPECT_EQ(mlp, figures(pictureOf({"--plan", "mlp", "--statistics", "--theme", "light"})));
}

// A trace alone brings its plan: the window is the same as with that plan beside it.
TEST_F(DesktopProgram, StartsWithThePlanOfATraceUnlessAnotherIsNamed)
{
    const auto simulation = ui::simulatePlan(engine::presetPlan("mlp").value());
    const QString trace = folder.filePath("mlp.strace");
    ASSERT_TRUE(traces::saveTrace(*simulation.value().trace, ui::fromQt(trace)).ok());
    // The lab alone, without the log, which says how it came to its plan.
    const auto lab = [](const QImage& window) { return window.copy(0, 100, 280, 400); };
    const QImage ofTrace = lab(pictureOf({"--trace", trace}));
    EXPECT_EQ(ofTrace, lab(pictureOf({"--plan", "mlp", "--trace", trace})));
    EXPECT_NE(ofTrace, lab(pictureOf({"--plan", "hello", "--trace", trace})));
}

TEST_F(DesktopProgram, SaysWhatIsWrongAndDrawsNothing)
{
    const Ended plan = start({"--screenshot", picture(), "--plan", "nosuch"});
    EXPECT_EQ(plan.exitCode, 1);
    EXPECT_THAT(plan.errors, testing::AllOf(testing::HasSubstr("'nosuch'"), testing::HasSubstr("gpt-small")));
    const Ended noModel = start({"--screenshot", picture(), "--plan", "eight-by-seventy", "--run"});
    EXPECT_EQ(noModel.exitCode, 1);
    EXPECT_THAT(noModel.errors, testing::HasSubstr("model"));
    EXPECT_FALSE(QFile::exists(picture()));
    const Ended folderMissing = start({"--screenshot", folder.filePath("no/such/out.png"), "--plan", "mlp"});
    EXPECT_EQ(folderMissing.exitCode, 1);
    EXPECT_THAT(folderMissing.errors, testing::HasSubstr("no/such/out.png"));
}

} // namespace
} // namespace stagecraft::desktop
