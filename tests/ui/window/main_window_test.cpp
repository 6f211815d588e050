// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole window, pressed as a user presses it: set-up, run, pause, stop, close during a run, undo, open, save, theme,
// layout. Runs go to the fake worker (tests/ui/bridge/fake_worker.cpp).
#include "ui/window/main_window.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"
#include "ui/window/window_actions.h"

#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
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

    void openWindow()
    {
        FileDialogs dialogs{.openFile = [this](const QString&, const QString&) { return chosen; },
                            .saveFile = [this](const QString&, const QString&, const QString&) { return chosen; },
                            .unsaved = [this](const QString&) {
                                ++asked;
                                return answer;
                            },
                            .tellProblem = [this](const QString&, const QString& text) { told << text; }};
        window = std::make_unique<MainWindow>(settings, WindowOptions{.programFolder = "/nowhere", .theme = {}, .dialogs = dialogs});
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

    QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    QString chosen;
    UnsavedAnswer answer = UnsavedAnswer::Cancel;
    int asked = 0;
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
    for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
        chosen = folder.filePath(name);
        press(window->actions().exportShown);
        EXPECT_GT(QFile(chosen).size(), 500) << name;
    }
    chosen = folder.filePath("whole.png");
    press(window->actions().exportWhole);
    EXPECT_GT(QFile(chosen).size(), 500);
    for (const char* name : {"a.json", "a.csv"}) {
        chosen = folder.filePath(name);
        press(window->actions().exportTrace);
        EXPECT_GT(QFile(chosen).size(), 200) << name;
    }
    EXPECT_TRUE(told.isEmpty()) << told.join("\n").toStdString();
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
    for (const QAction* menu : window->menuBar()->actions()) {
        for (const QAction* action : menu->menu()->actions()) {
            const bool command = !action->isSeparator() && !action->menu();
            EXPECT_TRUE(!command || !action->toolTip().isEmpty()) << action->text().toStdString();
        }
    }
}

} // namespace
} // namespace stagecraft::ui
