// SPDX-License-Identifier: GPL-3.0-or-later
//
// The session against a scripted worker process (fake_worker.cpp): the whole protocol, and every way to end.
#include "ui/bridge/worker_session.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"
#include "ui/bridge/worker_process.h"

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include <gmock/gmock.h>

#include <cerrno>
#include <csignal>

namespace stagecraft::ui {
namespace {

using engine::SessionState;
using testing::HasSubstr;

const WorkerCommand kFakeWorker{STAGECRAFT_FAKE_WORKER, {}};

engine::Plan planNamed(const std::string& name)
{
    engine::Plan plan = engine::presetPlan("hello").value();
    plan.name = name;
    plan.run.steps = 2;
    return plan;
}

// Gone for good: neither running nor a zombie that nobody waited for.
bool isGone(qint64 pid) { return ::kill(static_cast<pid_t>(pid), 0) == -1 && errno == ESRCH; }

class WorkerSessionTest : public testing::Test {
protected:
    WorkerSessionTest() { listenTo(*session); }

    void listenTo(WorkerSession& to)
    {
        to.setCommand(kFakeWorker);
        QObject::connect(&to, &WorkerSession::recordsArrived, &to, [this](const std::vector<traces::Record>& records) {
            for (const traces::Record& record : records) {
                const auto applied = traces::apply(trace, record);
                if (!applied.ok()) misfits.push_back(applied.error().message);
            }
        });
        QObject::connect(&to, &WorkerSession::stateChanged, &to, [this](SessionState state) { states.push_back(state); });
        QObject::connect(&to, &WorkerSession::failed, &to, [this](const engine::FailureMessage& failure) { failures.push_back(failure); });
        QObject::connect(&to, &WorkerSession::resulted, &to, [this](const engine::RunResult& result) { results.push_back(result); });
        QObject::connect(&to, &WorkerSession::workerSaid, &to, [this](const QString& line) { said << line; });
        QObject::connect(&to, &WorkerSession::recordsLost, &to, [this](qint64 count) { lost += count; });
    }
    bool waitFor(SessionState state)
    {
        return QTest::qWaitFor([&] { return session->state() == state; });
    }
    bool startAndWait(const std::string& name, SessionState state)
    {
        return session->start(planNamed(name)).ok() && waitFor(state);
    }

    std::unique_ptr<WorkerSession> session = std::make_unique<WorkerSession>();
    traces::Trace trace;
    std::vector<std::string> misfits;
    std::vector<SessionState> states;
    std::vector<engine::FailureMessage> failures;
    std::vector<engine::RunResult> results;
    QStringList said;
    qint64 lost = 0;
};

TEST_F(WorkerSessionTest, DeliversTheWholeTraceAndTheResultBeforeItSaysFinished)
{
    std::size_t slicesAtTheEnd = 0;
    QObject::connect(session.get(), &WorkerSession::stateChanged, session.get(), [&](SessionState state) {
        if (state == SessionState::Finished) slicesAtTheEnd = trace.sliceCount();
    });
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    EXPECT_THAT(states, testing::ElementsAre(SessionState::Preparing, SessionState::Running, SessionState::Finished));
    EXPECT_THAT(misfits, testing::IsEmpty());
    EXPECT_EQ(slicesAtTheEnd, trace.sliceCount());
    EXPECT_EQ(trace.steps().size(), 2U);
    EXPECT_EQ(trace.lane(traces::LaneId{0}).size(), 16U); // 2 steps of 4 forwards and 4 backwards
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results.front().measuredCosts.size(), 2U);
    ASSERT_TRUE(QTest::qWaitFor([&] { return said.contains("fake worker runs plain"); }));
}

TEST_F(WorkerSessionTest, PausesAndResumes)
{
    ASSERT_TRUE(startAndWait("hold", SessionState::Running));
    session->pause();
    ASSERT_TRUE(waitFor(SessionState::Paused));
    EXPECT_TRUE(session->active());
    session->resume();
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_EQ(trace.steps().size(), 2U);
}

TEST_F(WorkerSessionTest, StopsAndRunsAnotherPlanInTheSameWorker)
{
    ASSERT_TRUE(startAndWait("hold", SessionState::Running));
    const qint64 worker = session->workerPid();
    session->stop();
    EXPECT_EQ(session->state(), SessionState::Stopping);
    ASSERT_TRUE(waitFor(SessionState::Stopped));
    EXPECT_GT(trace.sliceCount(), 0U) << "what ran until the stop is kept";
    trace = {};
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    EXPECT_EQ(session->workerPid(), worker);
    EXPECT_THAT(misfits, testing::IsEmpty());
}

TEST_F(WorkerSessionTest, RefusesAStartDuringARun)
{
    ASSERT_TRUE(startAndWait("hold", SessionState::Running));
    const auto again = session->start(planNamed("plain"));
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message, HasSubstr("stop it"));
}

TEST_F(WorkerSessionTest, ReportsAKilledWorkerKeepsItsEventsAndStartsAnother)
{
    ASSERT_TRUE(startAndWait("hold", SessionState::Running));
    ASSERT_TRUE(QTest::qWaitFor([&] { return trace.sliceCount() > 0; }));
    const qint64 worker = session->workerPid();
    ASSERT_GT(worker, 0);
    ASSERT_EQ(::kill(static_cast<pid_t>(worker), SIGKILL), 0);
    ASSERT_TRUE(waitFor(SessionState::Failed));
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_THAT(failures.front().text, HasSubstr("signal 9"));
    EXPECT_THAT(failures.front().text, HasSubstr("kept"));
    EXPECT_GT(trace.sliceCount(), 0U);
    EXPECT_TRUE(isGone(worker));
    trace = {};
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    EXPECT_NE(session->workerPid(), worker);
    EXPECT_EQ(trace.steps().size(), 2U);
}

TEST_F(WorkerSessionTest, ReportsTheExitStatusOfAWorkerThatEndedByItself)
{
    ASSERT_TRUE(startAndWait("exit", SessionState::Failed));
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_THAT(failures.front().text, HasSubstr("exit status 3"));
    EXPECT_TRUE(said.contains("last words"));
    EXPECT_GT(trace.sliceCount(), 0U) << "all that it wrote before is there";
}

// Its GPUs are lost to it, and it has not ended yet when the next run is to start.
TEST_F(WorkerSessionTest, StartsTheRunAnewThatASpentWorkerDoesNotTake)
{
    ASSERT_TRUE(startAndWait("spent", SessionState::Finished));
    const qint64 worker = session->workerPid();
    trace = {};
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    EXPECT_NE(session->workerPid(), worker);
    EXPECT_THAT(failures, testing::IsEmpty());
    EXPECT_THAT(misfits, testing::IsEmpty());
    EXPECT_EQ(trace.steps().size(), 2U);
}

TEST_F(WorkerSessionTest, PassesOnWhereAStageFailed)
{
    ASSERT_TRUE(startAndWait("fail", SessionState::Failed));
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures.front().stage, 1);
    EXPECT_EQ(failures.front().microbatch, 2);
    EXPECT_NE(session->workerPid(), 0) << "the worker itself goes on";
}

TEST_F(WorkerSessionTest, NamesTheCommandThatCannotBeStartedAndTheRemedy)
{
    session->setCommand(workerCommand("ssh-that-is-not-there \"gpu host\" stagecraft-cli", "/nowhere"));
    ASSERT_TRUE(startAndWait("plain", SessionState::Failed));
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_THAT(failures.front().text, HasSubstr("ssh-that-is-not-there \"gpu host\" stagecraft-cli worker"));
    EXPECT_THAT(failures.front().text, HasSubstr("Engine command"));
    session->setCommand(kFakeWorker);
    EXPECT_TRUE(startAndWait("plain", SessionState::Finished));
}

TEST_F(WorkerSessionTest, SaysWhatIsWrongWithAStreamThatIsNoJournal)
{
    ASSERT_TRUE(startAndWait("garbage", SessionState::Failed));
    ASSERT_FALSE(failures.empty());
    EXPECT_THAT(failures.front().text, HasSubstr("standard output"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return session->workerPid() == 0; })) << "it is of no use any more";
    EXPECT_TRUE(startAndWait("plain", SessionState::Finished));
}

TEST_F(WorkerSessionTest, ReplacesAnIdleWorkerThatAnotherCommandStarted)
{
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    const qint64 first = session->workerPid();
    session->setCommand({STAGECRAFT_FAKE_WORKER, {"worker"}});
    ASSERT_TRUE(session->start(planNamed("plain")).ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_NE(session->workerPid(), first);
    EXPECT_TRUE(isGone(first));
}

TEST_F(WorkerSessionTest, CanBeStoppedWhileItStillWaitsForTheFormerWorker)
{
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    session->setCommand({STAGECRAFT_FAKE_WORKER, {"worker"}});
    ASSERT_TRUE(session->start(planNamed("plain")).ok());
    session->stop();
    EXPECT_EQ(session->state(), SessionState::Stopped);
    EXPECT_TRUE(QTest::qWaitFor([&] { return session->workerPid() == 0; }));
}

TEST_F(WorkerSessionTest, EndsTheWorkerDuringARunWithoutHangOrZombie)
{
    ASSERT_TRUE(startAndWait("hold", SessionState::Running));
    const qint64 worker = session->workerPid();
    QElapsedTimer time;
    time.start();
    session.reset();
    EXPECT_LT(time.elapsed(), 1500);
    EXPECT_TRUE(isGone(worker));
}

TEST_F(WorkerSessionTest, KillsAWorkerThatHeedsNeitherQuitNorTerminate)
{
    ASSERT_TRUE(startAndWait("deaf", SessionState::Running));
    const qint64 worker = session->workerPid();
    QElapsedTimer time;
    time.start();
    session.reset();
    EXPECT_LT(time.elapsed(), 1500);
    EXPECT_TRUE(isGone(worker));
}

TEST_F(WorkerSessionTest, EndsADeafWorkerOnASecondStop)
{
    ASSERT_TRUE(startAndWait("deaf", SessionState::Running));
    session->stop();
    EXPECT_EQ(session->state(), SessionState::Stopping);
    session->stop();
    ASSERT_TRUE(waitFor(SessionState::Stopped));
    EXPECT_THAT(failures, testing::IsEmpty());
    EXPECT_TRUE(startAndWait("plain", SessionState::Finished));
}

TEST_F(WorkerSessionTest, LosesNoEventOfABurstWithoutCountingIt)
{
    ASSERT_TRUE(startAndWait("many", SessionState::Finished));
    std::size_t points = 0;
    for (const traces::MemorySeries& series : trace.memory())
        if (series.memory == traces::MemoryClass::Other) points += series.time.size();
    EXPECT_EQ(static_cast<qint64>(points) + trace.lostEvents(), 60'000);
    EXPECT_EQ(lost, trace.lostEvents());
}

// Each line costs the window something: a flood must cost a bounded part of a tick, and be told.
TEST_F(WorkerSessionTest, LeavesOutWhatAFloodOfLinesSaysAndTellsHowMuch)
{
    ASSERT_TRUE(startAndWait("flood", SessionState::Finished));
    ASSERT_TRUE(QTest::qWaitFor([&] { return session->workerPid() != 0 && said.filter("xxx").size() + said.filter("left out").size() > 0; }));
    qint64 told = 0;
    qint64 leftOut = 0;
    for (const QString& line : said) {
        EXPECT_LE(line.size(), LineInbox::kLineBytes + 100);
        if (line.contains("left out")) leftOut += line.section(' ', 2, 2).toLongLong();
        else ++told;
    }
    EXPECT_GT(leftOut, 40'000);
    EXPECT_LE(told + leftOut, 50'002); // and the one that says what it runs
    EXPECT_TRUE(said.contains("line 0")) << "the first ones tell most";
}

TEST_F(WorkerSessionTest, KeepsWhatComesLateOutOfTheNextRun)
{
    ASSERT_TRUE(startAndWait("late", SessionState::Finished));
    trace = {};
    ASSERT_TRUE(startAndWait("plain", SessionState::Finished));
    EXPECT_THAT(misfits, testing::IsEmpty());
    for (const traces::MemorySeries& series : trace.memory()) EXPECT_EQ(series.memory, traces::MemoryClass::Weights);
    EXPECT_EQ(said.filter("run before had ended: 1 event of it").size(), 1) << said.join('\n').toStdString();
}

TEST(WorkerProcess, LosesItsPatienceWithAProcessThatNeverStarted)
{
    WorkerProcess process(std::make_shared<RecordInbox>(), std::make_shared<LineInbox>());
    QSignalSpy failed(&process, &WorkerProcess::couldNotStart);
    process.launch({"/no/such/engine", {}});
    process.shutDown();
    ASSERT_TRUE(!failed.isEmpty() || failed.wait());
    for (const QTimer* timer : process.findChildren<QTimer*>())
        EXPECT_FALSE(timer->isActive()) << "it would end the next process";
}

TEST(WorkerCommand, IsTheProgramBesideThisOneWithoutAPrefix)
{
    EXPECT_EQ(workerCommand("", "/opt/stagecraft/bin").text(), "/opt/stagecraft/bin/stagecraft-cli worker");
}

TEST(WorkerCommand, SplitsAPrefixLikeAShell)
{
    const WorkerCommand command = workerCommand("ssh -p 2222 \"gpu host\" stagecraft-cli", "/bin");
    EXPECT_EQ(command.program, "ssh");
    EXPECT_EQ(command.arguments, (QStringList{"-p", "2222", "gpu host", "stagecraft-cli", "worker"}));
}

} // namespace
} // namespace stagecraft::ui
