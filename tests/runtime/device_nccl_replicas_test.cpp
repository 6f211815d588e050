// SPDX-License-Identifier: Apache-2.0
//
// Replicas in several processes, which are threads here, that sum their gradients by NCCL as well (nccl_processes.h).
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl_processes.h"
#include "tests/runtime/replica_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>

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

class ReplicatedFamilyInProcessesByNccl : public testing::TestWithParam<FamilyCase> {};

// What is handed over and what is summed goes through the GPUs one after the other, in one order for both (FakeNccl): another one hangs.
TEST_P(ReplicatedFamilyInProcessesByNccl, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = replicated(planOf(GetParam()), 2);
    NcclProcesses processes({.count = 2 * plan.pipeline.ranks});
    const TeamOutcome team = processes.run(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    Plan inThreads = plan;
    inThreads.run.mode = RunMode::Threads;
    const Outcome onCpu = runPlan(inThreads);
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
    EXPECT_EQ(collectivesOf(first.trace), collectivesOf(onCpu.trace));
    EXPECT_THAT(first.trace.information(), Contains(HasSubstr("by NCCL 2.28.9")));
    if (GetParam().name != "forward-only") {
        EXPECT_THAT(processes.nccl().log(), Contains(StartsWith("sum 1: ")));
    }
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
    processes.expectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, ReplicatedFamilyInProcessesByNccl, testing::ValuesIn(synchronousOf(everyFamilyInProcesses(5))), [](const auto& each) {
    return caseName(each.param.name, each.param.mode);
});

// Two cliques that hand over, and one for each of two stages that sums.
TEST(ReplicasInProcessesByNccl, ConnectBeforeTheFirstStepAndSumBehindWhatIsHandedOver)
{
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 1;
    NcclProcesses processes({.count = 4});
    ASSERT_TRUE(processes.run(plan).ranks[0].result);
    const std::vector<std::string> log = processes.nccl().log();
    EXPECT_EQ(std::ranges::count(log, "init 0/2"), 4);
    EXPECT_EQ(std::ranges::count(log, "sum 0: 1"), 2);
    EXPECT_EQ(std::ranges::count(log, "sum 1: 256"), 4);
    const auto last = [&](const std::string& what) {
        return std::find_if(log.rbegin(), log.rend(), [&](const std::string& line) { return line.starts_with(what); }).base() - log.begin();
    };
    EXPECT_EQ(last("group 1: >0"), last("group 1:")); // rank 1 of each replica sends its last gradient last
    processes.expectNothingLeft();
}

TEST(ReplicasInProcessesByNccl, EndWithTheReasonOfAnAsynchronousError)
{
    NcclProcesses processes({.count = 4});
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = processes.run(plan, {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               processes.nccl().fail(1, kRemoteError);
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("another rank has ended, or the connection to it broke"));
    }
    processes.expectNothingLeft();
}

TEST(ReplicasInProcessesByNccl, LetNobodyWaitForARankThatFails)
{
    for (const int rank : {0, 3}) {
        NcclProcesses processes({.count = 4});
        const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{rank % 2},
                                  .microbatch = traces::MicroBatch{3}, .step = traces::Step{1}};
        const TeamOutcome team = processes.run(linear("1f1b", 2, 2, RunMode::Processes), {.faults = {{rank, fault}}});
        for (const Outcome& each : team.ranks) {
            EXPECT_EQ(each.last, SessionState::Failed);
            ASSERT_TRUE(each.failure);
            EXPECT_THAT(each.failure->text, HasSubstr("failed in step 1 on rank " + std::to_string(rank)));
        }
        processes.expectNothingLeft();
    }
}

TEST(ReplicasInProcessesByNccl, EndWhereverTheGpusFail)
{
    const auto run = [](std::optional<int> failsFrom) {
        NcclProcesses processes({.count = 4, .failsFrom = failsFrom});
        Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
        plan.run.check = CheckMode::Off;
        TeamOutcome team = processes.run(plan);
        EXPECT_THAT(processes.nccl().misuse(), IsEmpty());
        return team;
    };
    const int before = FakeGpus::get().blocks();
    ASSERT_TRUE(run({}).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 25, 50, 75, 95})
        for (const Outcome& each : run(operations * part / 100).ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Its sums are needed before all that is handed over is issued.
TEST(ReplicasInProcessesByNccl, GiveWayToTheHostWhereTheScheduleUpdatesWithinTheStep)
{
    Plan plan = linear("custom", 2, 2, RunMode::Processes);
    plan.pipeline.microbatches = 2;
    plan.pipeline.customSchedule = "0F0,0F1,0B0,0B1,0OPTIMIZER\n1F0,1B0,1F1,1B1,1OPTIMIZER\n";
    NcclProcesses processes({.count = 4});
    EXPECT_THAT(processes.run(plan).refusals, testing::Each(HasSubstr("updates weights within the step, and there sums come behind all that is handed over")));
    plan.run.device = DeviceKind::Cuda;
    const TeamOutcome team = runTeam(plan, {.devices = &FakeGpus::get().source(), .nccl = &processes.source});
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(team.ranks[0].trace.information(), Contains(HasSubstr("by way of the host: rank 0 cannot take NCCL")));
    EXPECT_THAT(processes.nccl().log(), IsEmpty());
}

TEST(ReplicasInProcessesByNccl, GiveUpAGpuThatHangsInASum)
{
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 1;
    const auto run = [&](std::optional<int> from) {
        NcclProcesses processes({.count = 4, .hangsFromExchange = from, .hangingGpu = 2});
        ManualClock clock;
        processes.source.clock = &clock;
        TeamOutcome team = processes.run(plan, {.clock = &monotonicClock(), .devicePatience = {{2, std::chrono::seconds(1)}}, .givenUp = true, .lead = passesTimeOnceAGpuHangs(clock)});
        processes.release();
        return team;
    };
    ASSERT_TRUE(run({}).ranks[0].result);
    const TeamOutcome team = run(FakeGpus::get().exchanges(2) - 1);
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, AnyOf(HasSubstr("the sum of the replicas' gradients by NCCL failed: rank "), HasSubstr("the hand-over from GPU to GPU failed: rank ")));
    }
    for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(team.spent[r].empty(), r != 2) << r;
}

TEST(ReplicasInProcessesByNccl, PauseGoOnAndStop)
{
    NcclProcesses processes({.count = 4});
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = processes.run(plan, {.lead = pausesGoesOnAndStops(10)});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    processes.expectNothingLeft();
}

} // namespace
} // namespace stagecraft::runtime
