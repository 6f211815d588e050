// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window and the real engine together: a plan is trained for real in the process that the window starts.
#include "engine/plan/plan_json.h"
#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"
#include "ui/window/main_window.h"
#include "ui/window/window_actions.h"

#include <QLabel>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

constexpr int kLongest = 120'000; // ms; a library is loaded from a cold disk

FileDialogs discarding()
{
    return {.openFile = [](const QString&, const QString&) { return QString(); },
            .saveFile = [](const QString&, const QString&, const QString&) { return QString(); },
            .unsaved = [](const QString&) { return UnsavedAnswer::Discard; },
            .tellProblem = [](const QString&, const QString&) {},
            .giveUp = [](const QString&) { return true; }};
}

class LiveWindow : public testing::Test {
protected:
    LiveWindow() { window->show(); }

    void run(const engine::Plan& plan, SessionState end = SessionState::Finished)
    {
        bench.document().startFrom(plan);
        ASSERT_TRUE(window->actions().run->isEnabled()) << window->actions().run->statusTip().toStdString();
        window->actions().run->trigger();
        ASSERT_TRUE(QTest::qWaitFor([&] { return engine::finished(bench.run().state()); }, kLongest)) << log();
        ASSERT_EQ(bench.run().state(), end) << log();
    }
    static engine::Plan emulated(const char* preset)
    {
        engine::Plan plan = engine::presetPlan(preset).value();
        plan.run.mode = engine::RunMode::Emulated;
        plan.run.steps = 2;
        return plan;
    }
    [[nodiscard]] std::string log() const { return window->log().toPlainText().toStdString(); }
    // Lines of the log that warn, but for those of a machine that other programs keep busy.
    [[nodiscard]] QStringList warnings() const
    {
        QStringList lines = window->log().toPlainText().split('\n').filter("warning");
        lines.removeIf([](const QString& line) { return line.contains(": the machine was busy"); });
        return lines;
    }

    const QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    std::unique_ptr<MainWindow> window = std::make_unique<MainWindow>(
        settings, WindowOptions{.programFolder = STAGECRAFT_PROGRAM_FOLDER, .theme = {}, .dialogs = discarding()});
    Workbench& bench = window->workbench();
};

TEST_F(LiveWindow, TrainsAPlanAndShowsWhatWasMeasured)
{
    QSignalSpy resulted(&bench.run(), &RunController::resulted);
    run(emulated("hello"));
    if (HasFatalFailure()) return;
    ASSERT_EQ(resulted.size(), 1);

    const engine::RunResult& result = *bench.run().result();
    EXPECT_NE(result.gradientCheck, engine::GradientCheck::Off);
    EXPECT_NE(result.gradientCheck, engine::GradientCheck::Failed);
    EXPECT_EQ(bench.run().finishedSteps(), 2);
    EXPECT_TRUE(std::isfinite(bench.run().lastLoss().value_or(NAN)));
    // 2 stages, 4 micro-batches, a forward and a backward each, in 2 steps; and what belongs to no micro-batch.
    EXPECT_GE(bench.run().trace()->sliceCount(), 32U);

    const QString status = window->findChild<QLabel*>("runStatus")->text();
    EXPECT_TRUE(status.contains("finished (emulated)") && status.contains("gradients:")) << status.toStdString();
    EXPECT_EQ(window->findChild<QLabel*>("traceLabel")->text(), "simulated + emulated");
    const auto& rows = window->figures().rows();
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const FigureRow& row) { return !row.other.isEmpty(); }));
    EXPECT_TRUE(window->actions().useMeasured->isEnabled()) << window->actions().useMeasured->statusTip().toStdString();
    EXPECT_EQ(window->log().problemCount(), 0) << log();
    EXPECT_TRUE(warnings().isEmpty()) << log();
    EXPECT_TRUE(window->close());
}

TEST_F(LiveWindow, TellsThatTheTrainingDiverged)
{
    engine::Plan plan = emulated("hello");
    plan.run.learningRate = 1e6;
    plan.run.optimizer = engine::OptimizerKind::Sgd;
    plan.run.steps = 8;
    run(plan, SessionState::Failed);
    if (HasFatalFailure()) return;
    EXPECT_EQ(window->log().problemCount(), 1) << log();
    EXPECT_TRUE(window->log().toPlainText().contains("the training has diverged. Take a lower learning rate")) << log();
}

} // namespace
} // namespace stagecraft::ui
