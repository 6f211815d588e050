// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/steady_state.h"

#include "tests/traces/staircase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

using test::staircase;

constexpr Step kStep{0};

// 1F1B, p = 2, m = 5, F = 1, B = 2.
const std::vector<std::string> k1F1B{
    "0F0 0F1 .   .   0B0 -   0F2 0B1 -   0F3 0B2 -   0F4 0B3 -   .   0B4 -",
    ".   1F0 1B0 -   1F1 1B1 -   1F2 1B2 -   1F3 1B3 -   1F4 1B4 -",
};

TEST(SteadyState, IsOnceTheBottleneckGoesBothWays)
{
    const std::optional<SteadyState> steady = steadyState(staircase(k1F1B), kStep);
    ASSERT_TRUE(steady);
    EXPECT_EQ(steady->bottleneck, Rank{0}) << "the first of equals";
    EXPECT_EQ(steady->phase, (Interval{4000, 13000})) << "B0 until the end of F4";
    EXPECT_DOUBLE_EQ(steady->period, 3000);
    EXPECT_DOUBLE_EQ(steady->rate, 1e9 / 3000);
    EXPECT_NEAR(steady->bubble, 0, 1e-12);
}

TEST(SteadyState, FollowsTheSlowestRank)
{
    // rank 1 takes 2 + 3 for each micro-batch, rank 0 stands still for two thirds of that
    const std::optional<SteadyState> steady = steadyState(
        staircase({"0F0 0F1 .   .   .   .   0B0 0F2 .   .   .   0B1 0F3 .   .   .   0B2 .   .   .   .   0B3",
                   ".   1F0 -   1B0 -   -   1F1 -   1B1 -   -   1F2 -   1B2 -   -   1F3 -   1B3 -   -"}),
        kStep);
    ASSERT_TRUE(steady);
    EXPECT_EQ(steady->bottleneck, Rank{1});
    EXPECT_DOUBLE_EQ(steady->period, 5000);
    EXPECT_NEAR(steady->bubble, 1 - (2.0 + 5.0) / 2 / 5, 1e-12);
}

TEST(SteadyState, IsNoneWhereAllForwardsComeFirst)
{
    EXPECT_FALSE(steadyState(staircase({"0F0 0F1 0F2 .   .   0B0 0B1 0B2", ".   1F0 1F1 1F2 1B0 1B1 1B2"}), kStep));
    EXPECT_FALSE(steadyState(staircase({"0F0 0B0"}), kStep)) << "too short";
    EXPECT_FALSE(steadyState(staircase({"0F0 0B0"}), Step{1}));
}

TEST(SteadyState, CountsInferenceByItsForwards)
{
    const std::optional<SteadyState> steady = steadyState(staircase({"0F0 0F1 0F2 0F3", ".   1F0 1F1 1F2 1F3"}), kStep);
    ASSERT_TRUE(steady);
    EXPECT_DOUBLE_EQ(steady->period, 1000);
    EXPECT_NEAR(steady->bubble, 0, 1e-12);
}

TEST(SteadyState, LeavesPausesAndTheOptimizerOut)
{
    Trace trace = staircase(k1F1B);
    trace.append(LaneId{0}, {.begin = 18000, .end = 60000, .action = makeAction(ActionKind::Optimizer, Stage{0})});
    trace.addPause({4500, 4900}); // in B0, so not between two forwards of the phase
    trace.addPause({9200, 9600}); // in F3
    const std::optional<SteadyState> steady = steadyState(trace, kStep);
    ASSERT_TRUE(steady);
    EXPECT_DOUBLE_EQ(steady->period, (3000 + 2600) / 2.0) << "two distances, one with a pause";
    EXPECT_EQ(steady->bubble, 0) << "the work of the whole step is a little more than the period says";
}

TEST(SteadyState, OfStepsIsTheDistanceOfTheirStarts)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    const auto addStep = [&](int step, TimeNs at) {
        trace.append(lane, {.begin = at, .end = at + 1000, .action = forward(Stage{0}, MicroBatch{0}), .step = Step{step}});
    };
    addStep(0, 0);
    EXPECT_EQ(stepPeriod(trace), std::nullopt);
    addStep(1, 9000);
    EXPECT_EQ(stepPeriod(trace), 9000);
    addStep(2, 14000);
    addStep(3, 18000);
    EXPECT_EQ(stepPeriod(trace), 4500) << "without the first step";
    EXPECT_EQ(stepPeriod(Trace{}), std::nullopt);
}

} // namespace
} // namespace stagecraft::traces
