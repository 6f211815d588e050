// SPDX-License-Identifier: GPL-3.0-or-later
//
// Runs from the bar to the end, paused, stopped, forced, killed; and what a run gives to the plan.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QDockWidget>
#include <QProgressBar>
#include <QSpinBox>
#include <QToolButton>

#include <csignal>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

TEST_F(MainWindowTest, RunsAPlanFromTheBarToTheEnd)
{
    runUntil("hello", SessionState::Finished);
    EXPECT_TRUE(statusText().contains("finished")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("· 2 steps ·")) << statusText().toStdString();
    EXPECT_TRUE(window->log().toPlainText().contains("run of hello, 2 ranks, threads")) << window->log().toPlainText().toStdString();
    EXPECT_TRUE(statusText().contains("loss 0.5")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("bitwise"));
    EXPECT_EQ(the<QLabel>("traceLabel").text(), "simulated + measured");
    EXPECT_TRUE(the<QDockWidget>("lossDock").isVisible());
    EXPECT_TRUE(window->actions().useMeasured->isEnabled());
    EXPECT_EQ(window->log().problemCount(), 0) << window->log().toPlainText().toStdString();
}

TEST_F(MainWindowTest, TellsWhatARunSaysOfItselfOnceAndAsNoProblem)
{
    runUntil("noted", SessionState::Finished);
    const QString log = window->log().toPlainText();
    const QString run = window->workbench().run().label();
    for (const char* note : {"the memory may not suffice", "the machine was busy"}) {
        EXPECT_EQ(log.count(note), 1) << log.toStdString();
        EXPECT_TRUE(log.contains(QStringLiteral("The %1: %2").arg(run, note))) << log.toStdString();
    }
    EXPECT_TRUE(log.contains(QStringLiteral("The %1: boundary tensors go by NCCL").arg(run))) << log.toStdString();
    EXPECT_EQ(window->log().problemCount(), 0);
    runUntil("noted", SessionState::Finished);
    EXPECT_EQ(window->log().toPlainText().count("the machine was busy"), 2) << "another run, another note";
}

TEST_F(MainWindowTest, PausesResumesAndStops)
{
    runUntil("hold", SessionState::Running);
    EXPECT_FALSE(window->actions().run->isEnabled());
    EXPECT_TRUE(window->actions().follow->isChecked());
    press(window->actions().pause);
    ASSERT_TRUE(waitFor(SessionState::Paused));
    EXPECT_EQ(window->actions().pause->text(), "Res&ume");
    press(window->actions().pause);
    ASSERT_TRUE(waitFor(SessionState::Finished));
    runUntil("hold", SessionState::Running);
    press(window->actions().stop);
    ASSERT_TRUE(waitFor(SessionState::Stopped));
    EXPECT_GT(window->workbench().run().trace()->sliceCount(), 0U);
    EXPECT_TRUE(window->actions().run->isEnabled());
}

TEST_F(MainWindowTest, ForcesARunThatDoesNotStop)
{
    runUntil("deaf", SessionState::Running);
    press(window->actions().stop);
    EXPECT_EQ(window->actions().stop->text(), "Force &stop");
    press(window->actions().stop);
    ASSERT_TRUE(waitFor(SessionState::Stopped));
    EXPECT_EQ(window->actions().stop->text(), "&Stop");
}

TEST_F(MainWindowTest, SurvivesAKilledEngineAndRunsAgain)
{
    runUntil("hold", SessionState::Running);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window->workbench().run().trace()->sliceCount() > 0; }));
    const qint64 worker = window->workbench().run().session().workerPid();
    ASSERT_GT(worker, 0);
    ASSERT_EQ(::kill(static_cast<pid_t>(worker), SIGKILL), 0);
    ASSERT_TRUE(waitFor(SessionState::Failed));
    EXPECT_EQ(window->log().problemCount(), 1);
    EXPECT_TRUE(window->log().toPlainText().contains("signal 9"));
    EXPECT_TRUE(the<QDockWidget>("logDock").windowTitle().contains("1"));
    EXPECT_GT(window->workbench().run().trace()->sliceCount(), 0U);
    runUntil("hello", SessionState::Finished);
}

TEST_F(MainWindowTest, NamesAnEngineThatCannotBeStarted)
{
    the<QLineEdit>("engineCommand").setText("no-such-engine --here");
    runUntil("hello", SessionState::Failed);
    EXPECT_TRUE(window->log().toPlainText().contains("no-such-engine --here worker"));
    EXPECT_EQ(settings.value("engineCommand").toString(), "no-such-engine --here");
}

TEST_F(MainWindowTest, LaysTheSimulationOfMeasuredTimesOverTheRun)
{
    runUntil("hello", SessionState::Finished);
    press(window->actions().useMeasured);
    EXPECT_EQ(the<QComboBox>("view").currentText(), "overlaid");
    const auto& rows = window->figures().rows();
    const auto error = std::find_if(rows.begin(), rows.end(), [](const FigureRow& row) { return row.name == "Prediction error"; });
    ASSERT_NE(error, rows.end());
    EXPECT_TRUE(error->other.endsWith("%"));
    EXPECT_TRUE(the<QLabel>("costOrigin").text().contains("run of hello"));
    press(window->actions().undo);
    EXPECT_FALSE(the<QLabel>("costOrigin").text().contains("run of hello"));
}

TEST_F(MainWindowTest, TakesThePlanOfARunOverAgain)
{
    runUntil("hello", SessionState::Finished);
    if (window->workbench().run().trace()->info.planJson.empty()) GTEST_FAIL() << "a run's trace carries its plan";
    const engine::Plan ran = window->workbench().document().plan();
    EXPECT_FALSE(window->actions().useTracePlan->isEnabled());
    the<QSpinBox>("microbatches").setValue(9);
    press(window->actions().useTracePlan);
    EXPECT_EQ(window->workbench().document().plan(), ran);
}

TEST_F(MainWindowTest, ShowsWhatIsAtWorkBesideTheRunAndCancelsIt)
{
    runUntil("hold", SessionState::Running);
    EXPECT_FALSE(the<QToolButton>("cancelButton").isVisible());
    auto* progress = window->findChild<QProgressBar*>("runProgress");
    ASSERT_TRUE(QTest::qWaitFor([&] { return progress->value() == 500; })); // what the fake worker says
    the<QSpinBox>("microbatches").setValue(100'000); // is simulated beside the window
    ASSERT_TRUE(window->workbench().simulation().busy());
    EXPECT_TRUE(statusText().contains("running")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("step 1 of 2")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("simulating"));
    EXPECT_TRUE(the<QDockWidget>("figuresDock").windowTitle().contains("the plan before"));
    EXPECT_EQ(progress->maximum(), 1000);
    EXPECT_EQ(progress->value(), 500);
    ASSERT_TRUE(QTest::qWaitFor([&] { return the<QToolButton>("cancelButton").isVisible(); })) << "once the bar has its new layout";
    the<QToolButton>("cancelButton").click();
    EXPECT_FALSE(window->workbench().simulation().busy());
    EXPECT_TRUE(QTest::qWaitFor([&] { return !the<QToolButton>("cancelButton").isVisible(); }));
    EXPECT_TRUE(the<QLabel>("banner").text().contains("cancelled"));
    EXPECT_TRUE(statusText().contains("running"));
}

TEST_F(MainWindowTest, ShowsAnEarlierRunFromTheMenu)
{
    EXPECT_FALSE(window->actions().runsMenu->isEnabled());
    runUntil("hello", SessionState::Finished);
    const auto first = window->workbench().run().trace();
    runUntil("hello", SessionState::Finished);
    const QList<QAction*> runs = window->actions().runsMenu->actions();
    ASSERT_EQ(runs.size(), 2);
    EXPECT_TRUE(runs[0]->isChecked());
    press(runs[1]);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window->workbench().other() == first; }));
    EXPECT_TRUE(window->actions().runsMenu->actions()[1]->isChecked());
    EXPECT_FALSE(window->actions().runsMenu->actions()[0]->isChecked());
}

TEST_F(MainWindowTest, OffersToFollowOnlyWhatGrows)
{
    openPlan("hello", "hello");
    EXPECT_FALSE(window->actions().follow->isEnabled());
    EXPECT_TRUE(window->actions().follow->toolTip().contains("No run"));
    runUntil("hold", SessionState::Running);
    EXPECT_TRUE(window->actions().follow->isEnabled());
    EXPECT_TRUE(window->actions().follow->isChecked());
    int buttons = 0;
    for (const QAbstractButton* button : window->findChildren<QAbstractButton*>())
        if (button->isVisible() && button->text().remove('&') == "Follow") ++buttons;
    EXPECT_EQ(buttons, 1);
    press(window->actions().pause);
    ASSERT_TRUE(waitFor(SessionState::Paused));
    press(window->actions().pause);
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_FALSE(window->actions().follow->isEnabled());
    EXPECT_FALSE(window->actions().follow->isChecked());
}

} // namespace
} // namespace stagecraft::ui
