// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole window, pressed as a user presses it: set-up, run, pause, stop, close during a run, undo, open, save, theme,
// layout. Runs go to the fake worker (tests/ui/bridge/fake_worker.cpp).
#include "ui/window/main_window.h"

#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/lab/fold_box.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"
#include "ui/window/selection_panel.h"
#include "ui/window/window_actions.h"

#include <QAbstractButton>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QProgressBar>
#include <QScrollBar>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QSplitter>
#include <QStyleOptionComboBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolBar>
#include <QToolButton>

#include <gmock/gmock.h>

#include <cerrno>
#include <csignal>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

class MainWindowTest : public testing::Test {
protected:
    MainWindowTest() { openWindow(); }

    void openWindow(std::optional<ThemeKind> theme = {})
    {
        FileDialogs dialogs{.openFile = [this](const QString&, const QString&) { return chosen; },
                            .saveFile = [this](const QString&, const QString&, const QString&) { return chosen; },
                            .unsaved = [this](const QString& text) {
                                question = text;
                                ++asked;
                                return answer;
                            },
                            .tellProblem = [this](const QString&, const QString& text) { told << text; },
                            .giveUp = [](const QString&) { return true; }};
        window = std::make_unique<MainWindow>(settings, WindowOptions{.programFolder = "/nowhere", .theme = theme, .dialogs = dialogs});
        window->show();
        the<QLineEdit>("engineCommand").setText(STAGECRAFT_FAKE_WORKER);
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = window->findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    void openPlan(const char* preset, const char* name)
    {
        engine::Plan plan = engine::presetPlan(preset).value();
        plan.name = name;
        plan.run.steps = 2;
        window->workbench().document().startFrom(plan);
    }
    bool waitFor(SessionState state)
    {
        return QTest::qWaitFor([&] { return window->workbench().run().state() == state; });
    }
    void press(QAction* action)
    {
        ASSERT_TRUE(action->isEnabled()) << action->text().toStdString() << ": " << action->statusTip().toStdString();
        action->trigger();
    }
    void runUntil(const char* name, SessionState state)
    {
        openPlan("hello", name);
        press(window->actions().run);
        ASSERT_TRUE(waitFor(state));
    }
    QString statusText() { return the<QLabel>("runStatus").text(); }

    // Every command of a menu and of the menus in it says more than its text, and the menu shows it. Qt gives an action its
    // text for a tooltip where it has none.
    int expectExplained(const QMenu& menu)
    {
        int count = 0;
        EXPECT_TRUE(menu.toolTipsVisible()) << menu.title().toStdString();
        for (const QAction* action : menu.actions()) {
            if (action->isSeparator()) continue;
            if (action->menu()) {
                count += expectExplained(*action->menu());
                continue;
            }
            ++count;
            QString text = action->text();
            text.remove('&').remove(QStringLiteral("…"));
            EXPECT_GT(action->toolTip().size(), text.size() + 3) << text.toStdString() << ": " << action->toolTip().toStdString();
            EXPECT_FALSE(action->statusTip().isEmpty()) << text.toStdString();
        }
        return count;
    }

    QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    QString chosen;
    UnsavedAnswer answer = UnsavedAnswer::Cancel;
    int asked = 0;
    QString question;
    QStringList told;
    std::unique_ptr<MainWindow> window;
};

TEST_F(MainWindowTest, TellsWhatToDoWhileThereIsNothing)
{
    EXPECT_TRUE(window->workbench().scene().empty());
    EXPECT_FALSE(window->actions().run->isEnabled());
    EXPECT_TRUE(window->actions().run->toolTip().contains("model"));
}

TEST_F(MainWindowTest, StartsFromAPresetOfTheMenuAndSimulatesAtOnce)
{
    for (QAction* action : window->actions().presetMenu->actions())
        if (action->text() == "gpt-small") action->trigger();
    EXPECT_FALSE(window->workbench().scene().empty());
    EXPECT_TRUE(window->windowTitle().contains("gpt-small"));
    EXPECT_EQ(the<QComboBox>("preset").currentText(), "gpt-small");
    EXPECT_EQ(the<QLabel>("traceLabel").text(), "simulated");
    EXPECT_EQ(the<QLabel>("clockLabel").text(), "clock: virtual");
    EXPECT_FALSE(window->figures().rows().empty());
}

TEST_F(MainWindowTest, DrawsAnotherTimelineWhenAControlChanges)
{
    openPlan("twelve-layers", "twelve-layers");
    const QImage before = window->timeline().grab().toImage();
    const auto rows = window->figures().rows();
    the<QSpinBox>("microbatches").setValue(20);
    EXPECT_EQ(window->workbench().scene().trace(0).info.microbatches, 20);
    EXPECT_NE(window->timeline().grab().toImage(), before);
    EXPECT_NE(window->figures().rows(), rows);
    press(window->actions().undo);
    EXPECT_EQ(the<QSpinBox>("microbatches").value(), 5);
    EXPECT_EQ(window->timeline().grab().toImage(), before);
    press(window->actions().redo);
    EXPECT_EQ(the<QSpinBox>("microbatches").value(), 20);
    EXPECT_TRUE(window->isWindowModified());
}

TEST_F(MainWindowTest, KeepsTheLastTimelineAndSaysWhyAPlanHasNone)
{
    openPlan("twelve-layers", "twelve-layers");
    auto& schedule = the<QComboBox>("schedule");
    schedule.setCurrentIndex(schedule.findData("interleaved"));
    EXPECT_TRUE(the<QLabel>("banner").isVisible());
    EXPECT_FALSE(window->workbench().scene().empty());
    EXPECT_FALSE(window->actions().run->isEnabled());
    the<QAbstractButton>("pipelineFix").click();
    EXPECT_FALSE(the<QLabel>("banner").isVisible());
    EXPECT_EQ(window->workbench().scene().trace(0).info.chunks, 2);
}

TEST_F(MainWindowTest, RunsAPlanFromTheBarToTheEnd)
{
    runUntil("hello", SessionState::Finished);
    EXPECT_TRUE(statusText().contains("finished")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("loss 0.5")) << statusText().toStdString();
    EXPECT_TRUE(statusText().contains("bitwise"));
    EXPECT_EQ(the<QLabel>("traceLabel").text(), "simulated + measured");
    EXPECT_TRUE(the<QDockWidget>("lossDock").isVisible());
    EXPECT_TRUE(window->actions().useMeasured->isEnabled());
    EXPECT_EQ(window->log().problemCount(), 0) << window->log().toPlainText().toStdString();
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

TEST_F(MainWindowTest, ClosesDuringARunWithoutHangOrOrphan)
{
    runUntil("hold", SessionState::Running);
    const qint64 worker = window->workbench().run().session().workerPid();
    ASSERT_GT(worker, 0);
    answer = UnsavedAnswer::Discard;
    QElapsedTimer time;
    time.start();
    EXPECT_TRUE(window->close());
    window.reset();
    EXPECT_LT(time.elapsed(), 2000);
    EXPECT_EQ(::kill(static_cast<pid_t>(worker), 0), -1);
    EXPECT_EQ(errno, ESRCH);
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

TEST_F(MainWindowTest, SwitchesTheViewFromTheBarAndTheMenu)
{
    runUntil("hello", SessionState::Finished);
    window->actions().views->actions()[2]->trigger(); // simulated only
    EXPECT_EQ(the<QComboBox>("view").currentText(), "simulated only");
    EXPECT_EQ(window->workbench().scene().sourceCount(), 1);
    auto& box = the<QComboBox>("view");
    box.setCurrentIndex(0);
    emit box.activated(0);
    EXPECT_TRUE(window->actions().views->actions()[0]->isChecked());
    EXPECT_EQ(window->workbench().scene().sourceCount(), 2);
}

// From each view to each other one: what listens to the scene meanwhile must find sources that are there.
TEST_F(MainWindowTest, ChangesFromEveryViewToEveryOther)
{
    runUntil("hello", SessionState::Finished);
    for (const ViewKind from : {ViewKind::Stacked, ViewKind::Overlaid, ViewKind::SimulatedOnly, ViewKind::OtherOnly}) {
        for (const ViewKind to : {ViewKind::Stacked, ViewKind::Overlaid, ViewKind::SimulatedOnly, ViewKind::OtherOnly}) {
            press(window->actions().views->actions()[static_cast<int>(from)]);
            QSignalSpy changes(&window->workbench().scene(), &TimelineScene::sourcesChanged);
            press(window->actions().views->actions()[static_cast<int>(to)]);
            EXPECT_EQ(changes.size(), from == to ? 0 : 1) << "one change, told once";
            const bool both = to == ViewKind::Stacked || to == ViewKind::Overlaid;
            EXPECT_EQ(window->workbench().scene().sourceCount(), both ? 2 : 1);
            EXPECT_EQ(window->workbench().scene().arrangement(), to == ViewKind::Overlaid ? Arrangement::Overlaid : Arrangement::Stacked);
        }
        press(window->actions().views->actions()[static_cast<int>(from)]);
        press(window->actions().useMeasured);
        EXPECT_EQ(window->workbench().view(), ViewKind::Overlaid);
    }
}

TEST_F(MainWindowTest, AsksForUnsavedChangesWhenItCloses)
{
    openPlan("hello", "hello");
    the<QSpinBox>("microbatches").setValue(9);
    EXPECT_FALSE(window->close());
    EXPECT_EQ(asked, 1);
    answer = UnsavedAnswer::Save;
    chosen = folder.filePath("closed.plan.json");
    EXPECT_TRUE(window->close());
    EXPECT_EQ(engine::loadPlan(fromQt(chosen)).value().pipeline.microbatches, 9);
}

TEST_F(MainWindowTest, AsksOnceAboutThePlanAndTheRunWhenItCloses)
{
    runUntil("hello", SessionState::Finished);
    EXPECT_FALSE(window->close());
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(question.contains("run of hello")) << question.toStdString();
    the<QSpinBox>("microbatches").setValue(9);
    EXPECT_FALSE(window->close());
    EXPECT_EQ(asked, 2);
    EXPECT_TRUE(question.contains("changes of \"hello\"") && question.contains("run of hello")) << question.toStdString();
    press(window->actions().undo);

    answer = UnsavedAnswer::Save;
    chosen = folder.filePath("closed.strace");
    EXPECT_FALSE(window->close()) << "the run is written first, beside the window";
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->isVisible(); }));
    EXPECT_EQ(asked, 3) << "and then the window closes without another question";
    EXPECT_EQ(traces::loadTrace(fromQt(chosen)).value().sliceCount(), window->workbench().run().trace()->sliceCount());
}

TEST_F(MainWindowTest, DoesNotAskAboutARunThatWasExported)
{
    runUntil("hello", SessionState::Finished);
    chosen = folder.filePath("exported.json");
    press(window->actions().exportTrace);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->files().busy(); }));
    EXPECT_TRUE(window->close());
    EXPECT_EQ(asked, 0);
}

TEST_F(MainWindowTest, StaysOpenWhereTheRunCannotBeWritten)
{
    runUntil("hello", SessionState::Finished);
    answer = UnsavedAnswer::Save;
    chosen = folder.filePath("no/such/folder.strace");
    EXPECT_FALSE(window->close());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->files().busy(); }));
    QCoreApplication::processEvents();
    EXPECT_TRUE(window->isVisible());
    EXPECT_EQ(told.size(), 1);
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

TEST_F(MainWindowTest, ShowsProblemsAlone)
{
    window->log().problem("it went wrong");
    for (int i = 0; i < 30; ++i) window->log().note("all is well");
    the<QCheckBox>("problemsOnly").setChecked(true);
    EXPECT_TRUE(window->log().toPlainText().contains("it went wrong"));
    EXPECT_FALSE(window->log().toPlainText().contains("all is well"));
    window->log().note("still well");
    EXPECT_FALSE(window->log().toPlainText().contains("still well"));
    the<QCheckBox>("problemsOnly").setChecked(false);
    EXPECT_TRUE(window->log().toPlainText().contains("still well"));
}

TEST_F(MainWindowTest, PutsThePanelsOnTheRightIntoTabsOnANarrowScreen)
{
    auto& figures = the<QDockWidget>("figuresDock");
    auto& selection = the<QDockWidget>("selectionDock");
    const auto tabbed = [&] { return window->tabifiedDockWidgets(&figures).contains(&selection); };
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_TRUE(tabbed());
    openPlan("hello", "hello");
    window->timeline().selectNext();
    EXPECT_FALSE(selection.visibleRegion().isEmpty()) << "what was asked for is in front";
    window->timeline().clearSelection();
    EXPECT_FALSE(figures.visibleRegion().isEmpty());
    window->resize(1920, 1080);
    QCoreApplication::processEvents();
    EXPECT_FALSE(tabbed());
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_TRUE(tabbed());
}

TEST_F(MainWindowTest, KeepsTheViewInTheBarOnASmallScreen)
{
    openPlan("hello", "hello");
    window->resize(800, 600);
    the<QSpinBox>("microbatches").setValue(1'000'000); // is simulated beside the window: there is a button to cancel it
    ASSERT_TRUE(QTest::qWaitFor([&] { return the<QToolButton>("cancelButton").isVisible(); }));
    EXPECT_TRUE(the<QComboBox>("view").isVisible());
    the<QToolButton>("cancelButton").click();
}

TEST_F(MainWindowTest, ScrollsASelectionThatDoesNotFit)
{
    SelectionPanel panel;
    panel.resize(300, 80);
    panel.show();
    ItemDetails details;
    details.title = "0F0";
    for (int i = 0; i < 20; ++i) details.lines.push_back({"Name", "value"});
    panel.showDetails(details);
    QCoreApplication::processEvents();
    EXPECT_GT(panel.verticalScrollBar()->maximum(), 0);
}

TEST_F(MainWindowTest, RefusesWhatTheCommandLineRefuses)
{
    openPlan("mlp", "mlp");
    auto& partition = the<QLineEdit>("partition");
    partition.selectAll();
    QTest::keyClicks(&partition, "1, 2, 3, 9");
    EXPECT_TRUE(the<QLabel>("banner").text().contains("15 layers")) << the<QLabel>("banner").text().toStdString();
}

TEST_F(MainWindowTest, KeepsThePlanWhenAnotherPresetIsNotWantedAfterAll)
{
    openPlan("hello", "hello");
    the<QSpinBox>("microbatches").setValue(9);
    auto& preset = the<QComboBox>("preset");
    preset.setCurrentIndex(preset.findText("mlp"));
    emit preset.textActivated("mlp");
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(window->workbench().document().plan().name, "hello");
    EXPECT_EQ(preset.currentText(), "hello");
}

TEST_F(MainWindowTest, OpensAndSavesThroughTheMenuAndRemembersTheFiles)
{
    openPlan("mlp", "mlp");
    chosen = folder.filePath("mine.plan.json");
    press(window->actions().saveAs);
    press(window->actions().open);
    EXPECT_TRUE(window->windowTitle().contains("mine.plan.json"));
    EXPECT_EQ(window->actions().recentMenu->actions().front()->text(), "mine.plan.json");
}

TEST_F(MainWindowTest, ExportsFromTheMenu)
{
    openPlan("hello", "hello");
    const auto writes = [&](QAction* action, const char* name, qint64 least) {
        chosen = folder.filePath(name);
        press(action);
        EXPECT_FALSE(action->isEnabled()) << "one at a time";
        ASSERT_TRUE(QTest::qWaitFor([&] { return !window->files().busy(); }));
        EXPECT_GT(QFile(chosen).size(), least) << name;
    };
    for (const char* name : {"a.png", "a.svg", "a.pdf"}) writes(window->actions().exportShown, name, 500);
    writes(window->actions().exportWhole, "whole.png", 500);
    for (const char* name : {"a.json", "a.csv"}) writes(window->actions().exportTrace, name, 200);
    EXPECT_TRUE(told.isEmpty()) << told.join("\n").toStdString();
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

TEST_F(MainWindowTest, SaysInASentenceWhyThereIsNoTimeline)
{
    engine::Plan plan = engine::presetPlan("hello").value();
    plan.pipeline.chunks = 3; // 1F1B has one
    window->workbench().document().startFrom(plan); // the first plan: nothing was simulated yet
    const QString first = the<QLabel>("banner").text();
    EXPECT_FALSE(first.isEmpty());
    EXPECT_FALSE(first.contains("..")) << first.toStdString();
    EXPECT_FALSE(first.contains("timeline")) << "there is none: " << first.toStdString();
    openPlan("hello", "hello");
    EXPECT_TRUE(the<QLabel>("banner").isHidden());
    EXPECT_EQ(the<QDockWidget>("figuresDock").windowTitle(), "Figures of the step");
    window->workbench().document().startFrom(plan);
    EXPECT_TRUE(the<QDockWidget>("figuresDock").windowTitle().contains("the plan before"));
    EXPECT_TRUE(the<QLabel>("banner").text().contains("The timeline shows"));
    openPlan("twelve-layers", "twelve-layers");
    the<QSpinBox>("microbatches").setValue(100'000);
    ASSERT_TRUE(window->workbench().simulation().busy());
    press(window->actions().cancelWork);
    EXPECT_FALSE(the<QLabel>("banner").text().contains("..")) << the<QLabel>("banner").text().toStdString();
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

// At the size that the window has at first; eight stages are what the model has layers for.
TEST_F(MainWindowTest, CutsNothingOffInTheLab)
{
    window->resize(1280, 800);
    openPlan("mlp", "mlp");
    engine::Plan plan = withShape(window->workbench().document().plan(), 8, 1);
    plan.costs.source = engine::CostSource::Model;
    window->workbench().document().edit(plan, "ranks", "ranks");
    QCoreApplication::processEvents(); // layouts
    auto& partition = the<QLineEdit>("partition");
    EXPECT_EQ(partition.text(), "1, 1, 1, 1, 1, 1, 1, 1");
    EXPECT_GE(partition.contentsRect().width() - 4, partition.fontMetrics().horizontalAdvance("16, 16, 16, 16, 16, 16, 16, 16"));
    for (const char* name : {"model", "schedule", "costSource", "runMode", "device", "check", "optimizer"}) {
        auto& box = the<QComboBox>(name);
        QStyleOptionComboBox option;
        option.initFrom(&box);
        const QRect field = box.style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, &box);
        for (int i = 0; i < box.count(); ++i)
            EXPECT_GE(field.width(), box.fontMetrics().horizontalAdvance(box.itemText(i))) << name << ": " << box.itemText(i).toStdString();
    }
    for (const char* name : {"stageCosts", "layers"}) {
        auto& table = the<QTableView>(name);
        for (int column = 0; column < table.model()->columnCount(); ++column) {
            const int width = table.columnWidth(column);
            const std::string title = table.model()->headerData(column, Qt::Horizontal).toString().toStdString();
            EXPECT_GE(width, table.horizontalHeader()->sectionSizeHint(column)) << name << ": " << title;
            EXPECT_GE(width, static_cast<QAbstractItemView&>(table).sizeHintForColumn(column)) << name << ": " << title;
        }
        EXPECT_LE(table.horizontalHeader()->length(), table.viewport()->width()) << name;
    }
}

TEST_F(MainWindowTest, SwitchesAndKeepsTheTheme)
{
    openPlan("hello", "hello");
    const QColor light = window->palette().color(QPalette::Window);
    press(window->actions().dark);
    EXPECT_LT(window->palette().color(QPalette::Window).lightness(), light.lightness());
    EXPECT_EQ(window->timeline().theme().kind, ThemeKind::Dark);
    EXPECT_TRUE(window->actions().dark->isChecked());
    window.reset();
    openWindow();
    EXPECT_EQ(window->theme().kind, ThemeKind::Dark);
    press(window->actions().light);
    EXPECT_EQ(window->theme().kind, ThemeKind::Light);
}

TEST_F(MainWindowTest, TakesAThemeOfTheCommandLineForOnce)
{
    press(window->actions().light);
    window.reset();
    openWindow(ThemeKind::Dark);
    EXPECT_EQ(window->theme().kind, ThemeKind::Dark);
    EXPECT_TRUE(window->actions().dark->isChecked());
    window.reset();
    openWindow();
    EXPECT_EQ(window->theme().kind, ThemeKind::Light);
}

TEST_F(MainWindowTest, WritesTheLogAnewInTheColoursOfAnotherTheme)
{
    press(window->actions().light);
    window->log().problem("it went wrong");
    window->log().warn("take care");
    const QString text = window->log().toPlainText();
    const auto uses = [&](const QColor& colour) { return window->log().document()->toHtml().contains(colour.name()); };
    const Theme light = Theme::of(ThemeKind::Light);
    const Theme dark = Theme::of(ThemeKind::Dark);
    EXPECT_TRUE(uses(light.error) && uses(light.warning));
    press(window->actions().dark);
    EXPECT_TRUE(uses(dark.error) && uses(dark.warning));
    EXPECT_FALSE(uses(light.error) || uses(light.warning) || uses(light.mutedText));
    EXPECT_EQ(window->log().toPlainText(), text);
    EXPECT_EQ(window->log().problemCount(), 1);
}

TEST_F(MainWindowTest, RestoresItsPanels)
{
    window->resize(1100, 700);
    the<QDockWidget>("selectionDock").hide();
    EXPECT_TRUE(window->close());
    window.reset();
    openWindow();
    EXPECT_FALSE(the<QDockWidget>("selectionDock").isVisible());
    EXPECT_EQ(window->size(), QSize(1100, 700));
    press(window->actions().resetLayout);
    EXPECT_TRUE(the<QDockWidget>("selectionDock").isVisible());
}

TEST_F(MainWindowTest, RestoresTheCentreAndTheFoldedPartsOfTheLab)
{
    openPlan("hello", "hello");
    QCoreApplication::processEvents();
    const QList<int> first = the<QSplitter>("centreSplitter").sizes();
    the<QSplitter>("centreSplitter").setSizes({first[0] - 60, first[1] + 60});
    const QList<int> moved = the<QSplitter>("centreSplitter").sizes();
    ASSERT_NE(moved, first);
    the<FoldBox>("costsBox").setOpen(false);
    EXPECT_TRUE(window->close());
    window.reset();
    openWindow();
    openPlan("hello", "hello");
    QCoreApplication::processEvents();
    EXPECT_EQ(the<QSplitter>("centreSplitter").sizes(), moved);
    EXPECT_FALSE(the<FoldBox>("costsBox").isOpen());
    EXPECT_TRUE(the<FoldBox>("modelBox").isOpen());
    press(window->actions().resetLayout);
    EXPECT_TRUE(the<FoldBox>("costsBox").isOpen());
    EXPECT_NEAR(the<QSplitter>("centreSplitter").sizes()[0], first[0], 40);
}

TEST_F(MainWindowTest, ShowsTheSelectedBlock)
{
    openPlan("hello", "hello");
    window->timeline().setFocus();
    window->timeline().selectNext();
    EXPECT_TRUE(the<QLabel>("selectionTitle").text().contains("0F0")) << the<QLabel>("selectionTitle").text().toStdString();
    window->timeline().clearSelection();
    EXPECT_TRUE(the<QLabel>("selectionTitle").text().contains("Nothing"));
}

TEST_F(MainWindowTest, ShowsAllKeys)
{
    KeyboardHelp help(window->actions().keys());
    QString all;
    for (const QLabel* label : help.findChildren<QLabel*>()) all += label->text();
    EXPECT_TRUE(all.contains("F5"));
    EXPECT_TRUE(all.contains("Undo"));
    for (const TimelineWidget::KeyHelp& key : TimelineWidget::keyHelp()) EXPECT_TRUE(all.contains(key.what.toHtmlEscaped()));
}

TEST_F(MainWindowTest, ExplainsEveryCommandAndUsesEachKeyOnce)
{
    QStringList keys;
    for (const QAction* action : window->findChildren<QAction*>()) {
        for (const QKeySequence& key : action->shortcuts()) {
            EXPECT_FALSE(keys.contains(key.toString())) << key.toString().toStdString();
            keys << key.toString();
        }
    }
    EXPECT_GT(keys.size(), 20);
    int explained = 0;
    for (const QAction* menu : window->menuBar()->actions()) explained += expectExplained(*menu->menu());
    EXPECT_GT(explained, 40);
}

TEST_F(MainWindowTest, NamesAndExplainsWhatTabReaches)
{
    runUntil("hello", SessionState::Finished);
    for (const char* name : {"Run", "Pause", "Stop", "Use measured times"}) {
        int found = 0;
        for (const QToolButton* button : the<QToolBar>("runBar").findChildren<QToolButton*>())
            if (button->accessibleName() == name && (button->focusPolicy() & Qt::TabFocus)) ++found;
        EXPECT_EQ(found, 1) << name;
    }
    for (const QWidget* panel : {static_cast<QWidget*>(&the<QDockWidget>("labDock")), static_cast<QWidget*>(&the<QDockWidget>("selectionDock")),
                                 static_cast<QWidget*>(&the<QDockWidget>("logDock")), static_cast<QWidget*>(&the<QToolBar>("runBar"))}) {
        for (const QLabel* label : panel->findChildren<QLabel*>()) {
            if (!(label->textInteractionFlags() & Qt::TextSelectableByMouse) || label->isHidden()) continue;
            EXPECT_TRUE(label->focusPolicy() & Qt::TabFocus) << label->objectName().toStdString() << ": " << label->text().toStdString();
        }
    }
    EXPECT_FALSE(window->log().toolTip().isEmpty());
    window->timeline().setFocus();
    window->timeline().selectNext();
    EXPECT_TRUE(the<QLabel>("selectionLines").accessibleName().contains(':'));
}

} // namespace
} // namespace stagecraft::ui
