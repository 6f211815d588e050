// SPDX-License-Identifier: Apache-2.0
//
// Runs in several processes, which are threads here: sessions that share nothing but messages. What MPI adds is tested by the command
// line's tests under mpirun.
#include "engine/runtime/process_run.h"
#include "engine/schedule/milestones.h"
#include "engine/transport/process_group.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/team.h"
#include "traces/analysis/rank_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;

Plan inProcesses(const std::string& schedule, int ranks, int chunks) { return littleTransformer(schedule, ranks, chunks, RunMode::Processes); }

std::vector<double> lossesInThreads(Plan plan)
{
    plan.run.mode = RunMode::Threads;
    return runPlan(plan).result->loss;
}

void expectWhole(const traces::Trace& trace, const Plan& plan)
{
    const Schedule schedule = scheduleOf(plan).value();
    std::map<int, std::multiset<std::string>> expected, ran;
    for (int r = 0; r < schedule.ranks; ++r)
        for (const traces::Action& action : schedule.order[static_cast<std::size_t>(r)])
            forEachWork(action, [&](const traces::Work& work) {
                if (work.kind == ActionKind::Optimizer) return;
                for (int step = 0; step < plan.run.steps; ++step) expected[r].insert(toText(traces::Action{work, {}}));
            });
    std::size_t handOffs = 0;
    for (const Lane& lane : trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (lane.info().kind == LaneKind::Transfer) ++handOffs;
            if (lane.info().kind == LaneKind::Compute && lane.action(i).kind() != ActionKind::Optimizer)
                ran[lane.info().rank.value].insert(toText(lane.action(i)));
        }
    EXPECT_EQ(ran, expected);
    EXPECT_GT(handOffs, 0U);
    std::size_t crossing = 0;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (const traces::Edge& edge : trace.edgesOfLane(traces::LaneId{l})) {
            EXPECT_GE(edge.ready, trace.slice(edge.from).end);
            EXPECT_GE(trace.slice(edge.to).begin, edge.ready);
            if (trace.lane(edge.from.lane).info().rank != trace.lane(edge.to.lane).info().rank) ++crossing;
        }
    EXPECT_EQ(crossing, handOffs); // each has its edge
    EXPECT_EQ(trace.steps().size(), static_cast<std::size_t>(plan.run.steps));
}

class EveryFamilyInProcesses : public testing::TestWithParam<FamilyCase> {};

TEST_P(EveryFamilyInProcesses, TrainsAsItDoesInThreads)
{
    const Plan plan = planOf(GetParam());
    const TeamOutcome team = runTeam(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << (first.failure ? first.failure->text : team.refusals.front());
    EXPECT_EQ(first.result->mode, "processes");
    EXPECT_EQ(first.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << first.result->gradientMaxAbsDiff;
    EXPECT_EQ(first.result->loss, lossesInThreads(plan));
    EXPECT_EQ(first.result->outputs.front(), outputShape(plan.model, plan.model.microbatchRows * plan.pipeline.microbatches));
    EXPECT_EQ(first.trace.info.label, traces::TraceLabel::Measured);
    EXPECT_THAT(first.trace.notes(), testing::IsEmpty());
    expectWhole(first.trace, plan);
    for (std::size_t r = 1; r < team.ranks.size(); ++r) {
        EXPECT_EQ(team.ranks[r].last, SessionState::Finished);
        EXPECT_FALSE(team.ranks[r].result);
        EXPECT_EQ(team.ranks[r].trace.steps().size(), 3U); // its part
    }
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
}

INSTANTIATE_TEST_SUITE_P(Runtime, EveryFamilyInProcesses, testing::ValuesIn(someInBf16(everyFamilyInProcesses(5))), [](const auto& each) {
    std::string name = each.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name + (each.param.precision == Precision::Bf16 ? "_bf16" : "");
});

TEST(Processes, SendOverTcpWhatTheyDoInMemory)
{
    for (const Plan& plan : {inProcesses("interleaved", 2, 2), inProcesses("zb-v", 2, 2), inProcesses("dualpipe", 2, 1)}) {
        const TeamOutcome team = runTeam(plan, {.net = NetKind::Tcp});
        const Outcome& first = team.ranks.front();
        ASSERT_TRUE(first.result) << (first.failure ? first.failure->text : team.refusals.front());
        EXPECT_EQ(first.result->gradientCheck, GradientCheck::Bitwise);
        EXPECT_EQ(first.result->loss, lossesInThreads(plan));
        expectWhole(first.trace, plan);
    }
}

TEST(Processes, TakeSlicesAndRecomputations)
{
    Plan plan = inProcesses("seq1f1b", 2, 1);
    plan.pipeline.slices = 3;
    plan.pipeline.recompute = Recompute::Full;
    const TeamOutcome team = runTeam(plan);
    ASSERT_TRUE(team.ranks[0].result);
    EXPECT_EQ(team.ranks[0].result->gradientCheck, GradientCheck::Tolerance);
    EXPECT_EQ(team.ranks[0].result->loss, lossesInThreads(plan));
}

// Over a network a small tensor comes sooner than a large one that was sent before it.
TEST(Processes, TakeEachTensorForWhatItIsWhereSmallOnesOvertakeLargeOnes)
{
    Plan plan = inProcesses("interleaved", 2, 2);
    const TeamOutcome team = runTeam(plan, {.isLate = [](const LatePort::Asked& asked) {
                                         return asked.channel == MessagePort::Channel::Bodies && asked.bytes > 7000 && asked.times < 200; // of blocks, not of the head
                                     }});
    ASSERT_TRUE(team.ranks[0].result) << (team.ranks[0].failure ? team.ranks[0].failure->text : team.refusals[0]);
    EXPECT_EQ(team.ranks[0].result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(team.ranks[0].result->loss, lossesInThreads(plan));
}

TEST(Processes, ClipByTheNormOfAllRanksTogetherAndSumTiedTables)
{
    Plan plan = inProcesses("1f1b", 2, 1);
    plan.run.clipNorm = 0.05;
    plan.model.tiedEmbeddings = true;
    const TeamOutcome team = runTeam(plan);
    ASSERT_TRUE(team.ranks[0].result) << (team.ranks[0].failure ? team.ranks[0].failure->text : team.refusals[0]);
    EXPECT_EQ(team.ranks[0].result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(team.ranks[0].result->loss, lossesInThreads(plan));
}

TEST(Processes, LetTheFailureOfOneEndAllByItsName)
{
    const Plan plan = inProcesses("1f1b", 3, 1);
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{2}, .step = traces::Step{1}};
    const TeamOutcome team = runTeam(plan, {.faults = {{1, fault}}});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_EQ(each.failure->rank, 1);
        EXPECT_THAT(each.failure->text, testing::HasSubstr("1B2 failed in step 1 on rank 1"));
    }
    const traces::Trace& trace = team.ranks[0].trace; // what ran until then, of all ranks
    EXPECT_EQ(trace.steps().size(), 1U);
    for (int r = 0; r < 3; ++r) EXPECT_GT(trace.lane(*trace.findLane(Rank{r}, LaneKind::Compute)).size(), 0U);
}

TEST(Processes, EndWhereOneCannotBuildItsStagesOrHasNoThread)
{
    const Plan plan = inProcesses("1f1b", 2, 1);
    const InjectedFault noThread{.kind = InjectedFault::Kind::NoThread, .stage = traces::Stage{1}};
    const TeamOutcome team = runTeam(plan, {.faults = {{1, noThread}}});
    for (const Outcome& each : team.ranks) {
        ASSERT_TRUE(each.failure);
        EXPECT_EQ(each.failure->rank.value_or(1), 1);
        EXPECT_THAT(each.failure->text, testing::HasSubstr("thread of rank 1 cannot be started"));
    }
}

// One is out of memory before its run begins: the others must not wait for its reports.
TEST(Processes, DoNotStartWhereOneCannot)
{
    const Plan plan = inProcesses("1f1b", 3, 1);
    for (const int poor : {0, 2}) {
        const TeamOutcome team = runTeam(plan, {.ringCapacities = {{poor, std::size_t{1} << 60}}});
        EXPECT_THAT(team.refusals, testing::Each(testing::HasSubstr("the run cannot start"))) << poor;
        EXPECT_THAT(team.refusals[0], testing::StartsWith(poor == 2 ? "rank 2: " : "the run"));
        for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Idle);
    }
}

// The records of all ranks together may be more than rank 0 has memory for.
TEST(Processes, ReportWhereTheTraceOfAllCannotBePutTogether)
{
    const TeamOutcome team = runTeam(inProcesses("1f1b", 2, 1), {.faults = {{0, {.kind = InjectedFault::Kind::ExceptionAtEnd}}}});
    const Outcome& first = team.ranks[0];
    EXPECT_EQ(first.last, SessionState::Failed);
    ASSERT_TRUE(first.failure);
    EXPECT_THAT(first.failure->text, testing::HasSubstr("putting the run together failed"));
    EXPECT_EQ(first.trace.steps().size(), 3U); // its own part stays
    EXPECT_EQ(team.ranks[1].last, SessionState::Finished);
}

TEST(Processes, FindAWrongGradientOfAnotherProcess)
{
    const Plan plan = inProcesses("1f1b", 2, 1);
    const InjectedFault wrong{.kind = InjectedFault::Kind::WrongGradient, .action = ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{0}, .step = traces::Step{1}};
    const TeamOutcome team = runTeam(plan, {.faults = {{1, wrong}}});
    ASSERT_TRUE(team.ranks[0].result);
    EXPECT_EQ(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_EQ(team.ranks[0].failure->stage, 1);
    EXPECT_EQ(team.ranks[1].last, SessionState::Failed);
}

bool heard(const Outcome& outcome, SessionState state)
{
    return std::find(outcome.states.begin(), outcome.states.end(), state) != outcome.states.end();
}

TEST(Processes, PauseGoOnAndStopTogether)
{
    Plan plan = inProcesses("1f1b", 2, 1);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = runTeam(plan, {.lead = [](Session& session, Outcome& outcome) {
                                         follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                         session.pause();
                                         follow(session, outcome, [&] { return heard(outcome, SessionState::Paused); });
                                         const std::size_t steps = outcome.trace.steps().size();
                                         session.resume();
                                         follow(session, outcome, [&] { return outcome.trace.steps().size() > steps + 2; });
                                         session.stop();
                                         followToEnd(session, outcome);
                                     }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped);
    EXPECT_EQ(team.ranks[0].trace.pauses().size(), 1U);
    EXPECT_GT(team.ranks[0].trace.pauses().front().length(), 0);
    EXPECT_EQ(team.ranks[1].trace.pauses().size(), 1U);
    EXPECT_TRUE(team.ranks[0].result); // of what ran
}

// However quickly one follows the other, the last word counts.
TEST(Processes, PauseAtTheLastWordOfMany)
{
    Plan plan = inProcesses("1f1b", 2, 1);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = runTeam(plan, {.lead = [](Session& session, Outcome& outcome) {
                                         follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                         for (int i = 0; i < 50; ++i) {
                                             session.pause();
                                             for (int j = 0; j < i % 4; ++j) {
                                                 if (j == 1) follow(session, outcome, [&] { return session.state() == SessionState::Paused; });
                                                 session.resume();
                                                 session.pause();
                                             }
                                             follow(session, outcome, [&] { return session.state() == SessionState::Paused; });
                                             session.resume();
                                             follow(session, outcome, [&] { return session.state() == SessionState::Running; });
                                         }
                                         session.stop();
                                         followToEnd(session, outcome);
                                     }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped);
}

// Rank 0's part of a run, and a rank 1 that says what the test wants.
TEST(ProcessRun, DoesNotTakeTheRestOfAnEarlierPauseForThatOfThisOne)
{
    LocalNet net(2);
    std::unique_ptr<ProcessGroup> groups[2];
    std::jthread joining([&] { groups[1] = ProcessGroup::join(net.port(1), {.host = "here", .clock = "c"}, 2).value(); });
    groups[0] = ProcessGroup::join(net.port(0), {.host = "here", .clock = "c"}, 2).value();
    joining.join();
    const Schedule schedule = scheduleOf(inProcesses("1f1b", 2, 1)).value();
    RecordInbox inbox;
    RunRecorder recorder(schedule, 16, inbox, 1, Rank{0});
    RunControl control(2, monotonicClock(), {.state = [](SessionState) {}, .paused = [](traces::Interval) {}});
    Trouble trouble(2, {});
    std::atomic<int> paused{0};
    ProcessRun all(*groups[0], {control, recorder, trouble, monotonicClock(), [&] { ++paused; }});
    PostOffice& other = groups[1]->office();
    const auto next = [&](MailKind kind) {
        std::optional<Mail> mail;
        other.waitUntil([&] { return (mail = other.find(kind)).has_value(); });
        return mail->text;
    };
    const auto rest = [&](const std::string& pause) {
        other.send(0, MailKind::Rested, pause);
        other.send(0, MailKind::Ping, "");
        next(MailKind::Pong); // it was heard
    };

    all.pause();
    const std::string early = next(MailKind::Pause);
    all.rested();
    all.resume();
    all.wentOn();
    all.pause();
    const std::string late = next(MailKind::Pause);
    EXPECT_NE(early, late);
    all.rested();
    rest(early);
    EXPECT_EQ(paused, 0);
    rest(late);
    EXPECT_EQ(paused, 1);
    all.resume();
    rest(late);
    EXPECT_EQ(paused, 1); // nor that of one that is over
}

// A stop comes from one thread, and the steps, which see it at once, are in another: that one may put the run away before the first has
// come to telling the others. Often, for the moment is short.
TEST(ProcessRun, TellsTheOthersOfAStopThatItsStepsSeeFirst)
{
    LocalNet net(2);
    std::unique_ptr<ProcessGroup> groups[2];
    std::jthread joining([&] { groups[1] = ProcessGroup::join(net.port(1), {.host = "here", .clock = "c"}, 2).value(); });
    groups[0] = ProcessGroup::join(net.port(0), {.host = "here", .clock = "c"}, 2).value();
    joining.join();
    const Schedule schedule = scheduleOf(inProcesses("1f1b", 2, 1)).value();
    PostOffice& other = groups[1]->office();
    constexpr int kRounds = 500;
    int told = 0;
    for (int round = 0; round < kRounds; ++round) {
        RecordInbox inbox;
        RunRecorder recorder(schedule, 16, inbox, 1, Rank{0});
        RunControl control(2, monotonicClock(), {.state = [](SessionState) {}, .paused = [](traces::Interval) {}});
        Trouble trouble(2, {});
        ProcessRun all(*groups[0], {control, recorder, trouble, monotonicClock(), [] {}});
        std::jthread steps([&] {
            while (!control.ending()) {}
            all.close();
        });
        control.stop();
        steps.join();
        other.send(0, MailKind::Ping, "");
        std::optional<Mail> pong;
        other.waitUntil([&] { return (pong = other.find(MailKind::Pong)).has_value(); }); // what was told before is there
        told += other.find(MailKind::End).has_value() ? 1 : 0;
    }
    EXPECT_EQ(told, kRounds);
}

// Before the first step, so that it holds from the first action on.
void setAtTheStart(Session& session, Outcome& outcome, const StageTrouble& trouble)
{
    session.pause();
    follow(session, outcome, [&] { return heard(outcome, SessionState::Paused); });
    session.trouble(trouble);
    session.resume();
}

// Until all stand still, or the run is over.
void followToRest(Session& session, Outcome& outcome)
{
    while (!finished(session.state()) && session.waitForRecords(std::chrono::milliseconds(300))) gather(outcome, session.takeRecords());
}

TEST(Processes, HoldAStageOfAnotherProcessAndLetItGo)
{
    const TeamOutcome team = runTeam(inProcesses("gpipe", 2, 1), {.lead = [](Session& session, Outcome& outcome) {
                                         setAtTheStart(session, outcome, {.stage = 1, .held = true});
                                         followToRest(session, outcome);
                                         EXPECT_TRUE(outcome.trace.steps().empty());
                                         session.trouble({.stage = 1, .held = false});
                                         followToEnd(session, outcome);
                                     }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Finished);
    EXPECT_EQ(team.ranks[0].trace.steps().size(), 3U);
}

TEST(Processes, StopWhileAStageOfAnotherProcessIsHeld)
{
    const TeamOutcome team = runTeam(inProcesses("gpipe", 2, 1), {.lead = [](Session& session, Outcome& outcome) {
                                         setAtTheStart(session, outcome, {.stage = 1, .held = true});
                                         followToRest(session, outcome);
                                         session.stop();
                                         followToEnd(session, outcome);
                                     }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped);
}

// Rank 0 takes its time until the fault: by then rank 1 has its first input, and is held.
TEST(Processes, EndAHeldStageWithTheFailureOfAnotherProcess)
{
    Plan plan = inProcesses("gpipe", 2, 1);
    plan.run.slowdown = {100, 1};
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = ActionKind::Forward, .stage = traces::Stage{0},
                              .microbatch = traces::MicroBatch{3}, .step = traces::Step{0}};
    const TeamOutcome team = runTeam(plan, {.faults = {{0, fault}}, .lead = [](Session& session, Outcome& outcome) {
                                                setAtTheStart(session, outcome, {.stage = 1, .held = true});
                                                followToEnd(session, outcome);
                                            }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, testing::HasSubstr("0F3 failed in step 0 on rank 0"));
    }
}

// By its clock a forward of rank 1 takes minutes, and by the plan a thousand times as long.
TEST(Processes, StopWhileAStageOfAnotherProcessIsSlowedDown)
{
    Plan plan = inProcesses("gpipe", 2, 1);
    plan.run.slowdown = {1, 1000};
    const TeamOutcome team = runTeam(plan, {.speed = {{1, 1'000'000}}, .lead = [](Session& session, Outcome& outcome) {
                                                followToRest(session, outcome);
                                                session.stop();
                                                followToEnd(session, outcome);
                                            }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped);
    EXPECT_EQ(team.ranks[0].trace.lane(*team.ranks[0].trace.findLane(Rank{0}, LaneKind::Compute)).size(), 4U); // what ran is kept
}

// Another host's clock: half a minute ahead. What is left of it in the merged trace is less than what the readings say.
TEST(Processes, BringTheClocksOfOtherHostsTogether)
{
    constexpr TimeNs kAhead = 30'000'000'000;
    const Plan plan = inProcesses("1f1b", 2, 1);
    const TeamOutcome team = runTeam(plan, {.ahead = {{1, kAhead}}});
    ASSERT_TRUE(team.ranks[0].result) << (team.ranks[0].failure ? team.ranks[0].failure->text : "");
    const traces::Trace& trace = team.ranks[0].trace;
    const std::vector<traces::ClockSummary> clocks = traces::clockSummaries(trace);
    ASSERT_EQ(clocks.size(), 2U);
    EXPECT_TRUE(clocks[0].shared);
    EXPECT_FALSE(clocks[1].shared);
    EXPECT_EQ(clocks[1].host, "host1");
    EXPECT_TRUE(clocks[1].driftPpm); // at the start and at the end
    for (const traces::ClockReading& reading : trace.clockReadings())
        if (reading.rank == Rank{1}) {
            EXPECT_LE(std::abs(reading.offset + kAhead), reading.error);
        }
    EXPECT_LT(trace.extent().length(), kAhead);
    EXPECT_LT(team.ranks[0].result->stepNs, kAhead);
}

TEST(Processes, SayWhichCommandStartsThem)
{
    const Plan plan = inProcesses("1f1b", 3, 1);
    const auto alone = makeLocalSession()->start(plan);
    ASSERT_FALSE(alone.ok());
    EXPECT_THAT(alone.error().message, testing::HasSubstr("mpirun -np 3 stagecraft-cli run PLAN --mode processes"));
    const TeamOutcome team = runTeam(plan, {}, 2);
    EXPECT_THAT(team.refusals[0], testing::AllOf(testing::HasSubstr("3 ranks"), testing::HasSubstr("2 processes"), testing::HasSubstr("mpirun -np 3")));
    EXPECT_EQ(team.refusals[1], team.refusals[0]);
}

} // namespace
} // namespace stagecraft::runtime
