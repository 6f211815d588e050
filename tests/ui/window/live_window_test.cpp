// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window and the real engine together: a plan is trained for real in the process that the window starts.
#include "engine/plan/plan_json.h"
#include "ui/explore/explore_windows.h"
#include "ui/explore/schedule_list.h"
#include "ui/explore/what_if_window.h"
#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"
#include "ui/window/main_window.h"
#include "ui/window/window_actions.h"

#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
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

// From a run to a prediction of another schedule, and to the run of that.
TEST_F(LiveWindow, RunsWhatItPredictedFromARun)
{
    run(emulated("hello"));
    if (HasFatalFailure()) return;
    WhatIfWindow& whatIf = window->explore().whatIf();
    window->actions().whatIf->trigger();
    QSignalSpy predicted(&whatIf, &WhatIfWindow::predicted);
    whatIf.findChild<ScheduleList*>("whatIfSchedules")->check({"gpipe"});
    QTest::mouseClick(whatIf.findChild<QPushButton*>("whatIfStart"), Qt::LeftButton);
    ASSERT_TRUE(predicted.wait());
    ASSERT_EQ(whatIf.rows().size(), 3U) << whatIf.findChild<QLabel*>("whatIfProblem")->text().toStdString();

    auto* start = whatIf.findChild<QPushButton*>("whatIfRun");
    ASSERT_TRUE(start->isEnabled()) << start->toolTip().toStdString();
    QSignalSpy performed(&whatIf, &WhatIfWindow::performed);
    QTest::mouseClick(start, Qt::LeftButton);
    ASSERT_TRUE(performed.wait(kLongest)) << log();
    ASSERT_EQ(whatIf.rows().size(), 4U);
    EXPECT_EQ(whatIf.rows()[3].kind, engine::WhatIfKind::Performed);
    EXPECT_EQ(whatIf.rows()[3].pipeline.schedule, "gpipe");
    EXPECT_EQ(whatIf.rows()[2].predictionError, engine::predictionError(whatIf.rows()[2].step, whatIf.rows()[3].step));
    EXPECT_EQ(whatIf.scene().sourceCount(), 3) << "the trace, the prediction, and its run";
    EXPECT_EQ(bench.document().plan().pipeline.schedule, "gpipe");
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

// Slow stages and stages that stand still are asked for in the lab, while the run goes on.
TEST_F(LiveWindow, HoldsAStageOfTheRunThatGoesOn)
{
    engine::Plan plan = emulated("hello");
    plan.run.mode = engine::RunMode::Threads;
    plan.run.steps = 1'000'000;
    plan.run.check = engine::CheckMode::Off;
    bench.document().startFrom(plan);
    auto* held = window->findChild<QCheckBox*>("troubleHeld");
    ASSERT_NE(held, nullptr);
    EXPECT_FALSE(held->isEnabled());
    window->actions().run->trigger();
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().finishedSteps() > 2; }, kLongest)) << log();
    EXPECT_TRUE(held->isEnabled());
    held->setChecked(true);
    held->setChecked(false);
    const auto wasHeld = [&] {
        const traces::Trace& trace = *bench.run().trace();
        for (const traces::Lane& lane : trace.lanes())
            for (std::size_t i = 0; i < lane.size(); ++i)
                if (lane.text(i) != traces::TextId{} && trace.text(lane.text(i)) == "stage 0 held") return true;
        return false;
    };
    // the engine may have taken both words between two actions: then again
    while (!wasHeld()) {
        held->setChecked(true);
        QTest::qWait(50);
        held->setChecked(false);
        const int steps = bench.run().finishedSteps();
        ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().finishedSteps() > steps; }, kLongest)) << log();
    }
    window->actions().stop->trigger();
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().state() == SessionState::Stopped; }, kLongest)) << log();
    EXPECT_FALSE(held->isEnabled());
    EXPECT_EQ(window->log().problemCount(), 0) << log();
}

} // namespace
} // namespace stagecraft::ui
