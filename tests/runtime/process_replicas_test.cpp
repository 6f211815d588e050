// SPDX-License-Identifier: Apache-2.0
//
// Replicas of which each rank is a process, or here a thread of the test (team.h): they sum their gradients by messages, and train with the
// bits of mode threads.
#include "tests/runtime/replica_plans.h"
#include "tests/runtime/team.h"
#include "traces/analysis/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;

Outcome inThreads(Plan plan)
{
    plan.run.mode = RunMode::Threads;
    return runPlan(plan);
}

std::string whyNot(const TeamOutcome& team)
{
    const Outcome& first = team.ranks.front();
    return first.failure ? first.failure->text : team.refusals.front();
}

// By rank and kind of lane what ran there, how often.
std::map<std::pair<int, LaneKind>, std::multiset<std::string>> ranIn(const traces::Trace& trace)
{
    std::map<std::pair<int, LaneKind>, std::multiset<std::string>> ran;
    for (const Lane& lane : trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i) ran[{lane.info().rank.value, lane.info().kind}].insert(toText(lane.action(i)));
    return ran;
}

std::set<std::string> lanesOf(const traces::Trace& trace)
{
    std::set<std::string> names;
    for (const Lane& lane : trace.lanes()) names.insert(lane.info().name);
    return names;
}

void expectAsInThreads(const TeamOutcome& team, const Plan& plan)
{
    const Outcome threads = inThreads(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    ASSERT_TRUE(threads.result);
    EXPECT_EQ(first.result->mode, "processes");
    EXPECT_EQ(first.result->gradientCheck, threads.result->gradientCheck) << "largest difference " << first.result->gradientMaxAbsDiff;
    EXPECT_EQ(first.result->loss, threads.result->loss);
    EXPECT_EQ(first.result->outputs, threads.result->outputs);
    EXPECT_THAT(first.trace.notes(), IsEmpty());
    EXPECT_EQ(ranIn(first.trace), ranIn(threads.trace));
    EXPECT_EQ(lanesOf(first.trace), lanesOf(threads.trace));
    EXPECT_EQ(first.trace.steps().size(), static_cast<std::size_t>(plan.run.steps));
    std::size_t ofSums = 0;
    for (std::size_t l = 0; l < first.trace.laneCount(); ++l)
        for (const traces::Edge& edge : first.trace.edgesOfLane(traces::LaneId{l})) {
            EXPECT_GE(first.trace.slice(edge.to).begin, edge.ready);
            const Lane& to = first.trace.lane(edge.to.lane);
            const Lane& from = first.trace.lane(edge.from.lane);
            if (to.info().kind == LaneKind::Collective) ++ofSums;
            else EXPECT_EQ(replicaOf(first.trace.info, to.info().rank), replicaOf(first.trace.info, from.info().rank));
        }
    const auto edges = [](const traces::Trace& trace) {
        std::size_t count = 0;
        for (std::size_t l = 0; l < trace.laneCount(); ++l)
            if (trace.lane(traces::LaneId{l}).info().kind == LaneKind::Collective) count += trace.edgesOfLane(traces::LaneId{l}).size();
        return count;
    };
    EXPECT_EQ(ofSums, edges(threads.trace));
    for (const traces::MemorySeries& series : first.trace.memory()) {
        const std::string which = "rank " + std::to_string(series.rank.value) + " " + std::string(traces::memoryClassText(series.memory));
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << which;
        }
        if (series.memory == MemoryClass::Weights || series.memory == MemoryClass::Optimizer) {
            EXPECT_EQ(most(first.trace, series.rank, series.memory), most(threads.trace, series.rank, series.memory)) << which;
        }
    }
    for (std::size_t r = 1; r < team.ranks.size(); ++r) {
        EXPECT_EQ(team.ranks[r].last, SessionState::Finished);
        EXPECT_FALSE(team.ranks[r].result);
    }
}

class ReplicatedFamilyInProcesses : public testing::TestWithParam<FamilyCase> {};

TEST_P(ReplicatedFamilyInProcesses, TrainsWithTheBitsOfThreads)
{
    const Plan plan = replicated(planOf(GetParam()), 2);
    expectAsInThreads(runTeam(plan), plan);
}

INSTANTIATE_TEST_SUITE_P(Runtime, ReplicatedFamilyInProcesses, testing::ValuesIn(someInBf16(synchronousOf(everyFamilyInProcesses(4)))), [](const auto& each) {
    return caseName(each.param.name, each.param.mode, each.param.precision);
});

Plan little(const std::string& schedule = "1f1b", int ranks = 2, int replicas = 2)
{
    Plan plan = linear(schedule, ranks, replicas, RunMode::Processes);
    plan.machine.bucketBytes = 1'500;
    return plan;
}

// Each makes a third of each sum, and the order of addition shows.
TEST(ReplicasInProcesses, SumInTheOrderOfTheReplicasWhoeverComesFirst)
{
    for (const int replicas : {3, 4})
        for (const traces::Bytes bucket : {1, 1'500, 1 << 20}) {
            Plan plan = little("1f1b", 2, replicas);
            plan.machine.bucketBytes = bucket;
            expectAsInThreads(runTeam(plan), plan);
            expectAsInThreads(runTeam(plan, {.isLate = [](const LatePort::Asked& asked) {
                                  return asked.channel == MessagePort::Channel::Bodies && asked.bytes > 200 && asked.times < 50;
                              }}), plan);
        }
}

// One rank alone is a pipeline as well: plain data parallelism.
TEST(ReplicasInProcesses, MayHaveOneRankEach)
{
    Plan plan = little("gpipe", 1, 3);
    const TeamOutcome team = runTeam(plan);
    ASSERT_TRUE(team.ranks.front().result) << whyNot(team);
    EXPECT_EQ(team.ranks.front().result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(team.ranks.front().result->loss, inThreads(plan).result->loss);
}

TEST(ReplicasInProcesses, GoOverTcpAsInMemory)
{
    for (const char* schedule : {"zb-h1", "chimera"}) {
        const Plan plan = little(schedule);
        expectAsInThreads(runTeam(plan, {.net = NetKind::Tcp}), plan);
    }
}

TEST(ReplicasInProcesses, ClipByTheNormAndSumTiedTables)
{
    for (const char* schedule : {"1f1b", "chimera"}) {
        Plan plan = replicated(littleTransformer(schedule, 2, 1, RunMode::Processes), 2);
        plan.model.tiedEmbeddings = true;
        plan.run.clipNorm = 0.1;
        plan.run.lossScale = 8;
        expectAsInThreads(runTeam(plan), plan);
    }
}

TEST(ReplicasInProcesses, KeepCheckpointsThatThreadsGoOnFrom)
{
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "process-replicas";
    std::filesystem::remove_all(folder);
    Plan plan = little();
    plan.run.steps = 4;
    const std::vector<double> whole = inThreads(plan).result->loss;
    plan.run.checkpoint = folder.string();
    plan.run.steps = 2;
    ASSERT_TRUE(runTeam(plan).ranks.front().result);
    plan.run.checkpoint.clear();
    plan.run.resume = folder.string();
    plan.run.steps = 4;
    const std::vector<double> rest(whole.begin() + 2, whole.end());
    EXPECT_EQ(inThreads(plan).result->loss, rest);
    const TeamOutcome team = runTeam(plan);
    ASSERT_TRUE(team.ranks.front().result) << whyNot(team);
    EXPECT_EQ(team.ranks.front().result->loss, rest);
    EXPECT_EQ(team.ranks.front().result->gradientCheck, GradientCheck::Bitwise);
    std::filesystem::remove_all(folder);
}

// Rank 2 is the first of replica 1, which has the second half of the batch.
TEST(ReplicasInProcesses, FindAWrongGradientOfAnyReplica)
{
    const InjectedFault fault{.kind = InjectedFault::Kind::WrongGradient, .action = ActionKind::Backward, .stage = traces::Stage{0},
                              .microbatch = traces::MicroBatch{1}, .step = traces::Step{1}};
    const TeamOutcome team = runTeam(little(), {.faults = {{2, fault}}});
    EXPECT_EQ(team.ranks.front().last, SessionState::Failed);
    EXPECT_EQ(team.ranks.front().result->gradientCheck, GradientCheck::Failed);
}

TEST(ReplicasInProcesses, EndWithTheFailureOfOneByItsRank)
{
    for (const int microbatch : {0, 3}) {
        const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = ActionKind::Backward, .stage = traces::Stage{1},
                                  .microbatch = traces::MicroBatch{microbatch}, .step = traces::Step{1}};
        const TeamOutcome team = runTeam(little(), {.faults = {{3, fault}}});
        for (const Outcome& each : team.ranks) {
            EXPECT_EQ(each.last, SessionState::Failed);
            ASSERT_TRUE(each.failure);
            EXPECT_THAT(each.failure->text, HasSubstr("failed in step 1 on rank 3"));
        }
    }
}

TEST(ReplicasInProcesses, EndWhereOneHasNoThread)
{
    const InjectedFault fault{.kind = InjectedFault::Kind::NoThread, .stage = traces::Stage{0}};
    const TeamOutcome team = runTeam(little(), {.faults = {{2, fault}}});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("rank 2"));
    }
}

TEST(ReplicasInProcesses, PauseGoOnAndStopTogether)
{
    Plan plan = little();
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = runTeam(plan, {.lead = pausesGoesOnAndStops(10)});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    EXPECT_TRUE(team.ranks.front().result);
}

TEST(ReplicasInProcesses, BringTheClocksOfTheirHostsTogether)
{
    const Plan plan = little();
    const TeamOutcome team = runTeam(plan, {.ahead = {{2, 3'600'000'000'000}, {3, -1'800'000'000'000}}});
    ASSERT_TRUE(team.ranks.front().result) << whyNot(team);
    EXPECT_EQ(ranIn(team.ranks.front().trace), ranIn(inThreads(plan).trace));
    EXPECT_EQ(team.ranks.front().trace.clockReadings().size(), 2U + 2U * 2U);
}

TEST(ReplicasInProcesses, AreRefusedWhereTheyDivideOrAreNotAllThere)
{
    EXPECT_THAT(runTeam(divided(little(), Sharding::Zero1)).refusals, Each(HasSubstr("replicas in processes of their own sum whole gradients and divide nothing: take "
                                                                                     "sharding none, or mode threads or emulated")));
    EXPECT_THAT(runTeam(little(), {}, 2).refusals, Each(HasSubstr("the plan has 2 ranks in each of 2 replicas, and mpirun has started 2 processes: mpirun -np 4 ")));
}

} // namespace
} // namespace stagecraft::runtime
