// SPDX-License-Identifier: Apache-2.0
//
// Runs in several processes, which are threads here, that hand over from GPU to GPU by NCCL (nccl_processes.h).
#include "tests/runtime/little_plan.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::AnyOf;
using testing::Contains;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using testing::StartsWith;
using traces::MemoryClass;

class EveryFamilyByNccl : public testing::TestWithParam<FamilyCase> {};

TEST_P(EveryFamilyByNccl, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = planOf(GetParam());
    NcclProcesses processes({.count = 4});
    const TeamOutcome team = processes.run(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    Plan inThreads = plan;
    inThreads.run.mode = RunMode::Threads;
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), runPlan(inThreads).result->loss));
    EXPECT_THAT(first.trace.information(), Contains(HasSubstr("by NCCL 2.28.9")));
    EXPECT_THAT(first.trace.notes(), testing::Not(Contains(HasSubstr("by NCCL")))) << "nothing is amiss";
    EXPECT_THAT(processes.nccl().log(), Contains(StartsWith("group 1:")));
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
    processes.expectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilyByNccl, testing::ValuesIn(everyFamilyInProcesses(5)), [](const auto& each) {
    std::string name = each.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST(NcclRun, HandsOverWhileActivationsAreAway)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Processes);
    plan.pipeline.microbatches = 8;
    plan.pipeline.offload = 0.5;
    NcclProcesses processes({.count = 2});
    const TeamOutcome team = processes.run(plan);
    ASSERT_TRUE(team.ranks.front().result) << whyNot(team);
    EXPECT_NE(team.ranks.front().result->gradientCheck, GradientCheck::Failed);
    processes.expectNothingLeft();
}

Plan little(int steps = 3)
{
    Plan plan = littleTransformer("1f1b", 3, 1, RunMode::Processes);
    plan.model.layers.insert(plan.model.layers.begin() + 1, TransformerBlock{32, 2, 64});
    plan.run.steps = steps;
    if (steps > 3) plan.run.check = CheckMode::Off;
    return plan;
}

TEST(NcclRun, ConnectsEachPairBeforeTheFirstStepAndExchangesInTheCommonOrder)
{
    NcclProcesses processes({.count = 3});
    ASSERT_TRUE(processes.run(little(1)).ranks[0].result);
    std::vector<std::string> ofTheMiddle;
    std::ptrdiff_t sends = 0;
    std::ptrdiff_t receipts = 0;
    for (const std::string& line : processes.nccl().log()) {
        if (!line.starts_with("group 1:")) continue;
        ofTheMiddle.push_back(line);
        sends += std::count(line.begin(), line.end(), '>');
        receipts += std::count(line.begin(), line.end(), '<');
    }
    EXPECT_EQ(sends, 2 + 4 * 2) << "a byte to each of two, then of 4 micro-batches an activation and a gradient";
    EXPECT_EQ(receipts, 2 + 4 * 2);
    EXPECT_EQ(ofTheMiddle[0], "group 1: >0 1 <0 1");
    EXPECT_EQ(ofTheMiddle[1], "group 1: >2 1 <2 1");
    EXPECT_THAT(ofTheMiddle[2], StartsWith("group 1: <0 "));
    processes.expectNothingLeft();
}

TEST(NcclRun, TakesTheHostWhereTwoRanksShareAGpuAndSaysSo)
{
    NcclProcesses processes({.count = 2});
    Plan plan = little(1);
    EXPECT_THAT(processes.run(plan).refusals, testing::Each(HasSubstr("run.transport: NCCL cannot hand over: ranks 0 and 2 are both on GPU bus 0 of here")));
    FakeGpus::get().reset({.count = 1});
    plan.run.mode = RunMode::Processes;
    plan.run.device = DeviceKind::Cuda;
    const TeamOutcome team = runTeam(plan, {.devices = &FakeGpus::get().source(), .nccl = &processes.source});
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_THAT(team.ranks[0].trace.information(), Contains(HasSubstr("by way of the host: ranks 0 and 1 are both on GPU bus 0")));
    EXPECT_THAT(processes.nccl().log(), IsEmpty());
}

// What rank 0's user does once the run is under way.
template <class Act>
TeamOptions onceUnderWay(Act act)
{
    return {.lead = [act](Session& session, Outcome& outcome) {
        follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
        act();
        followToEnd(session, outcome);
    }};
}

TEST(NcclRun, EndsWithTheReasonOfAnAsynchronousError)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), onceUnderWay([&] { processes.nccl().fail(1, kRemoteError); }));
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_EQ(each.failure->rank, 1);
        EXPECT_THAT(each.failure->text, HasSubstr("another rank has ended, or the connection to it broke"));
    }
    EXPECT_GT(team.ranks[0].trace.steps().size(), 2U); // what ran until then
    EXPECT_GT(team.ranks[0].trace.lanes().size(), 3U);
    processes.expectNothingLeft();
}

// The clock by which NCCL is waited for is the test's: nothing is late before it says so.
TEST(NcclRun, EndsWhereACallHangs)
{
    NcclProcesses processes({.count = 3});
    ManualClock clock;
    processes.source.clock = &clock;
    const TeamOutcome team = processes.run(little(100'000), {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               processes.nccl().hang(1);
                                               while (!processes.nccl().hangs()) std::this_thread::yield();
                                               follow(session, outcome, [&] {
                                                   clock.advance(30'000'000'000);
                                                   return false;
                                               });
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, AnyOf(HasSubstr("NCCL could not put"), HasSubstr("nothing has moved on its communication stream")));
    }
    EXPECT_GT(team.ranks[0].trace.steps().size(), 2U);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

class HangingGpu : public testing::Test {
protected:
    static constexpr int kGpu = 1; // of the rank in the middle

    // NCCL's watchdog sees nothing but what its clock says.
    TeamOutcome run(FakeGpus::Setup gpus, Plan plan, std::function<void(Session&, Outcome&)> lead = followToEnd)
    {
        gpus.count = 3;
        gpus.hangingGpu = kGpu;
        NcclProcesses processes(gpus);
        processes.source.clock = &clock;
        TeamOutcome team = processes.run(std::move(plan), {.clock = &monotonicClock(), .devicePatience = {{kGpu, std::chrono::seconds(1)}}, .givenUp = true, .lead = std::move(lead)});
        processes.release();
        return team;
    }
    static void expectThatOneIsGivenUp(const TeamOutcome& team, const testing::Matcher<std::string>& why)
    {
        for (std::size_t r = 0; r < team.ranks.size(); ++r) {
            EXPECT_EQ(team.spent[r].empty(), r != kGpu) << r;
            EXPECT_EQ(team.ranks[r].last, SessionState::Failed) << r;
            ASSERT_TRUE(team.ranks[r].failure) << r;
            EXPECT_THAT(team.ranks[r].failure->text, why) << r;
        }
        EXPECT_THAT(team.ranks[kGpu].failure->text, HasSubstr("the next run takes a new one"));
    }

    ManualClock clock;
};

// Whatever is waited for then: what it makes, or what it makes first for others. Those wait for their own GPUs, which answer.
TEST_F(HangingGpu, IsGivenUpAndNoOther)
{
    ASSERT_TRUE(run({}, little()).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {30, 50, 70, 90})
        expectThatOneIsGivenUp(run({.hangsFrom = operations * part / 100}, little()), HasSubstr("GPU 1 has not answered rank 1 for 1 s"));
}

// NCCL's watchdog ends the exchange for all, but not the kernel.
TEST_F(HangingGpu, IsGivenUpWhereAKernelOfNcclDoesNotEnd)
{
    ASSERT_TRUE(run({}, little()).ranks[0].result);
    const int exchanges = FakeGpus::get().exchanges(kGpu);
    for (const int from : {0, exchanges / 2, exchanges - 1})
        expectThatOneIsGivenUp(run({.hangsFromExchange = from}, little(), passesTimeOnceAGpuHangs(clock)), HasSubstr("the hand-over from GPU to GPU failed: rank "));
}

// A stop is agreed on at once, and then the others do not come any more.
TEST_F(HangingGpu, IsGivenUpWhereItKeepsARunFromStopping)
{
    const auto stops = [](Session& session, Outcome& outcome) {
        follow(session, outcome, [&] { return FakeGpus::get().hangs(); });
        session.stop();
        followToEnd(session, outcome);
    };
    const TeamOutcome team = run({.hangsFromExchange = 20}, little(100'000), stops);
    EXPECT_EQ(team.ranks[kGpu].last, SessionState::Failed);
    ASSERT_TRUE(team.ranks[kGpu].failure);
    EXPECT_THAT(team.ranks[kGpu].failure->text, HasSubstr("GPU 1 has not answered rank 1 for 1 s, ending its exchanges by NCCL: it hangs"));
    EXPECT_NE(team.spent[kGpu], "");
    for (const std::size_t other : {0, 2}) EXPECT_EQ(team.spent[other], "");
}

TEST(NcclRun, LetsNobodyWaitForARankThatFails)
{
    NcclProcesses processes({.count = 3});
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{2}, .step = traces::Step{1}};
    const TeamOutcome team = processes.run(little(), {.faults = {{1, fault}}});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("1B2 failed in step 1 on rank 1"));
    }
    processes.expectNothingLeft();
}

TEST(NcclRun, EndsWhereverTheGpusFail)
{
    const auto run = [](std::optional<int> failsFrom) {
        NcclProcesses processes({.count = 3, .failsFrom = failsFrom});
        TeamOutcome team = processes.run(little());
        EXPECT_THAT(processes.nccl().misuse(), IsEmpty());
        return team;
    };
    const int before = FakeGpus::get().blocks();
    ASSERT_TRUE(run({}).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 25, 50, 75, 95}) {
        for (const Outcome& each : run(operations * part / 100).ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Whose input does not come rests: a pause does not wait for it, nor does it count as a hang.
TEST(NcclRun, PausesGoesOnAndStops)
{
    NcclProcesses processes({.count = 3});
    const auto heard = [](const Outcome& outcome, SessionState state) { return std::find(outcome.states.begin(), outcome.states.end(), state) != outcome.states.end(); };
    const TeamOutcome team = processes.run(little(100'000), {.lead = pausesGoesOnAndStops(20)});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    EXPECT_TRUE(heard(team.ranks[0], SessionState::Paused));
    processes.expectNothingLeft();
}

TEST(NcclRun, WaitsForAStageThatIsHeld)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               session.trouble({.stage = 1, .held = true});
                                               while (session.waitForRecords(std::chrono::milliseconds(300))) gather(outcome, session.takeRecords());
                                               const std::size_t steps = outcome.trace.steps().size();
                                               session.trouble({.stage = 1, .held = false});
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > steps + 2; });
                                               session.stop();
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    processes.expectNothingLeft();
}

TEST(NcclRun, StopsWithinAStepWithoutAFailure)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), {.lead = [](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               session.stop();
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Stopped);
        EXPECT_FALSE(each.failure) << each.failure->text;
    }
    EXPECT_TRUE(team.ranks[0].result);
    processes.expectNothingLeft();
}

TEST(NcclRun, DoesNotStartWhereTheRanksDoNotMeet)
{
    NcclProcesses processes({.count = 3});
    processes.nccl().failCall("init", 2);
    const TeamOutcome team = processes.run(little());
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("a call of the system failed in it"));
    }
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

} // namespace
} // namespace stagecraft::runtime
