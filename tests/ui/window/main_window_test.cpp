// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window while a plan is set up: preset, controls, simulation, files, log.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"

#include <QAbstractButton>
#include <QCheckBox>
#include <QComboBox>
#include <QDockWidget>
#include <QSpinBox>

namespace stagecraft::ui {
namespace {

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

} // namespace
} // namespace stagecraft::ui
