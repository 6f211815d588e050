// SPDX-License-Identifier: Apache-2.0
//
// The operators of LibTorch beneath the actions of a run on the CPU.
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include "traces/analysis/kernel_groups.h"

#include <gmock/gmock.h>

#include <set>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using traces::Lane;
using traces::LaneKind;
using traces::Rank;
using traces::Trace;

Outcome recorded(const std::string& schedule, int ranks, RunMode mode, traces::TraceLevel level = traces::TraceLevel::Kernels)
{
    Plan plan = littleTransformer(schedule, ranks, 1, mode);
    if (schedule == "dualpipe") plan.pipeline.microbatches = 8;
    plan.run.check = CheckMode::Off;
    plan.run.steps = 2;
    plan.run.tracing = level;
    return runPlan(plan);
}

std::vector<const Lane*> operatorLanes(const Trace& trace, Rank rank)
{
    std::vector<const Lane*> lanes;
    for (const Lane& lane : trace.lanes())
        if (lane.info().rank == rank && traces::holdsOperators(lane.info())) lanes.push_back(&lane);
    return lanes;
}

// The operators that lie in a block of the rank, by kind of action; what lies in none is told as a failure.
std::map<traces::ActionKind, std::set<std::string>> operatorsByKind(const Trace& trace, Rank rank)
{
    std::map<traces::ActionKind, std::set<std::string>> all;
    for (const Lane* lane : operatorLanes(trace, rank))
        for (std::size_t i = 0; i < lane->size(); ++i) {
            bool within = false;
            for (const Lane& blocks : trace.lanes()) {
                if (blocks.info().rank != rank || blocks.info().kind != LaneKind::Compute || within) continue;
                const std::size_t b = blocks.firstEndingAfter(lane->begin(i));
                within = b < blocks.size() && blocks.begin(b) <= lane->begin(i) && lane->end(i) <= blocks.end(b);
                if (within) all[blocks.action(b).kind()].insert(trace.text(lane->text(i)));
            }
            EXPECT_TRUE(within) << trace.text(lane->text(i)) << " of rank " << rank.value;
        }
    return all;
}

class OperatorsRun : public testing::TestWithParam<RunMode> {};

TEST_P(OperatorsRun, HasThemBeneathTheBlocksOfEachRank)
{
    const Outcome outcome = recorded("1f1b", 2, GetParam());
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    for (const Rank rank : {Rank{0}, Rank{1}}) {
        ASSERT_EQ(operatorLanes(outcome.trace, rank).size(), 1U);
        const auto byKind = operatorsByKind(outcome.trace, rank);
        EXPECT_THAT(byKind.at(traces::ActionKind::Forward), Contains(HasSubstr("aten::"))) << "rank " << rank.value;
        EXPECT_THAT(byKind.at(traces::ActionKind::Backward), Contains(HasSubstr("Backward"))) << "autograd's nodes";
        for (const auto& [kind, names] : byKind) EXPECT_THAT(names, Not(Contains(HasSubstr("autograd::")))) << traces::kindName(kind);
        EXPECT_THAT(byKind.at(traces::ActionKind::Backward), Contains("AccumulateGrad"));
    }
    const traces::SliceRef first{*outcome.trace.findLane(Rank{0}, LaneKind::Compute), 0};
    EXPECT_THAT(traces::kernelsOf(outcome.trace, first), Not(IsEmpty())) << "the selected block lists them";
}

TEST_P(OperatorsRun, ComputesTheSameToTheBit)
{
    const Outcome plain = recorded("1f1b", 2, GetParam(), traces::TraceLevel::Events);
    const Outcome outcome = recorded("1f1b", 2, GetParam());
    ASSERT_TRUE(plain.result && outcome.result);
    EXPECT_EQ(outcome.result->loss, plain.result->loss);
    for (const Lane& lane : plain.trace.lanes()) EXPECT_FALSE(traces::holdsOperators(lane.info())) << "nobody asked for them";
}

INSTANTIATE_TEST_SUITE_P(Modes, OperatorsRun, testing::Values(RunMode::Threads, RunMode::Emulated), [](const auto& of) { return std::string(runModeText(of.param)); });

// The two of a pair run on two threads of the rank, which have a lane each.
TEST(OperatorsOfPairs, LieOnALaneForEachThread)
{
    const Outcome outcome = recorded("dualpipe", 4, RunMode::Threads);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    ASSERT_EQ(operatorLanes(outcome.trace, Rank{1}).size(), 2U);
    for (int r = 0; r < 4; ++r) operatorsByKind(outcome.trace, Rank{r});
}

} // namespace
} // namespace stagecraft::runtime
