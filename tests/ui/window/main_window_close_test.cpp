// SPDX-License-Identifier: GPL-3.0-or-later
//
// Closing the window: what it asks about, what it writes, what it leaves behind.
#include "tests/ui/window/main_window_fixture.h"

#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"

#include <QElapsedTimer>
#include <QSpinBox>

#include <cerrno>
#include <csignal>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

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

TEST_F(MainWindowTest, AsksAboutEveryRunThatNoFileHas)
{
    runUntil("hello", SessionState::Finished);
    chosen = folder.filePath("first.strace");
    press(window->actions().exportTrace);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->files().busy(); }));
    runUntil("second", SessionState::Finished);
    runUntil("hold", SessionState::Running);
    const auto going = window->workbench().run().trace();
    ASSERT_TRUE(QTest::qWaitFor([&] { return going->sliceCount() > 0; }));
    EXPECT_FALSE(window->close());
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(question.contains("run of second") && question.contains("run of hold")) << question.toStdString();
    EXPECT_TRUE(question.contains("still goes on")) << question.toStdString();
    EXPECT_FALSE(question.contains("run of hello")) << "a file has it: " << question.toStdString();
    EXPECT_TRUE(window->workbench().run().active()) << "whoever stays, stays with the run";

    answer = UnsavedAnswer::Save;
    EXPECT_FALSE(window->close());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->isVisible(); }, 20'000));
    EXPECT_EQ(asked, 2) << "no other question";
    ASSERT_EQ(saveTitles.size(), 3);
    EXPECT_TRUE(saveTitles[1].contains("run of hold") && saveTitles[2].contains("run of second")) << saveTitles.join('\n').toStdString();
    const auto& runs = window->workbench().runs();
    ASSERT_EQ(runs.size(), 3U);
    EXPECT_EQ(traces::loadTrace(fromQt(saved[1])).value().sliceCount(), runs[0].trace->sliceCount()) << "all that it did until it was stopped";
    EXPECT_EQ(traces::loadTrace(fromQt(saved[2])).value().sliceCount(), runs[1].trace->sliceCount());
}

TEST_F(MainWindowTest, AsksAboutARunThatHasNothingToSaveYet)
{
    window->workbench().run().setCommand({"/bin/cat", {}}); // an engine that says nothing
    openPlan("hello", "hello");
    press(window->actions().run);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window->workbench().run().active(); }));
    givesUp = false;
    EXPECT_FALSE(window->close());
    EXPECT_TRUE(question.contains("run of hello")) << question.toStdString();
    EXPECT_TRUE(window->workbench().run().active());
    givesUp = true;
    EXPECT_TRUE(window->close());
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

} // namespace
} // namespace stagecraft::ui
