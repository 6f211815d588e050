// SPDX-License-Identifier: Apache-2.0
//
// Slices of a sequence whose attention grows with the position: equal lengths or equal times.
#include "unit_costs.h"

#include "engine/plan/plan.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/slice_shares.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

Plan sliced(int slices, Slicing slicing, std::optional<double> attention)
{
    Plan plan;
    plan.pipeline.schedule = "seq1f1b";
    plan.pipeline.slices = slices;
    plan.pipeline.slicing = slicing;
    plan.costs.attentionShare = attention;
    plan.costs.activationBytes = 1'000'000;
    return plan;
}

traces::StepFigures figuresOf(const Plan& plan) { return test::figuresOf(scheduleOf(plan).value(), costsOf(plan).value()); }

// By hand: half of the time in attention, two slices. The second reads three times as many pairs as the first.
TEST(SliceShares, GiveLaterSlicesMoreTimeOrLessLength)
{
    const SliceShares equal = sliceShares(2, 0.5, Slicing::Equal);
    EXPECT_THAT(equal.time, ElementsAre(DoubleEq(0.75), DoubleEq(1.25)));
    EXPECT_THAT(equal.size, Each(DoubleEq(1)));
    // x + x^2 = 1: the golden section
    const double golden = (std::sqrt(5.0) - 1) / 2;
    const SliceShares balanced = sliceShares(2, 0.5, Slicing::Balanced);
    EXPECT_THAT(balanced.time, Each(DoubleEq(1)));
    EXPECT_NEAR(balanced.size[0], 2 * golden, 1e-12);
    EXPECT_NEAR(balanced.size[1], 2 - 2 * golden, 1e-12);
}

TEST(SliceShares, AddUpToTheWholeSequence)
{
    for (const int slices : {1, 2, 3, 8, 100})
        for (const double attention : {0.0, 0.1, 0.5, 1.0})
            for (const Slicing slicing : {Slicing::Equal, Slicing::Balanced}) {
                const SliceShares shares = sliceShares(slices, attention, slicing);
                EXPECT_NEAR(std::accumulate(shares.time.begin(), shares.time.end(), 0.0), slices, 1e-9);
                EXPECT_NEAR(std::accumulate(shares.size.begin(), shares.size.end(), 0.0), slices, 1e-9);
                // each balanced slice really takes its part of the time
                double end = 0;
                for (const double size : shares.size) {
                    const double begin = end;
                    end += size / slices;
                    const auto time = [&](double x) { return (1 - attention) * x + attention * x * x; };
                    if (slicing == Slicing::Balanced) {
                        EXPECT_NEAR(time(end) - time(begin), 1.0 / slices, 1e-9);
                    }
                }
            }
}

TEST(Slicing, LeavesPlansWithoutAttentionAsTheyAre)
{
    const CostTable costs = costsOf(sliced(4, Slicing::Equal, std::nullopt)).value();
    EXPECT_TRUE(costs.sliceTime.empty());
    EXPECT_TRUE(costs.sliceSize.empty());
    EXPECT_TRUE(costsOf(sliced(1, Slicing::Equal, 0.5)).value().sliceTime.empty()) << "whole sequences";
}

// Balanced slices take what equal ones take where nothing grows; equal ones wait for the last of each sequence.
TEST(Slicing, IsFasterWhenItBalances)
{
    const traces::TimeNs without = figuresOf(sliced(4, Slicing::Equal, std::nullopt)).makespan;
    EXPECT_EQ(figuresOf(sliced(4, Slicing::Balanced, 0.6)).makespan, without);
    EXPECT_GT(figuresOf(sliced(4, Slicing::Equal, 0.6)).makespan, without);
}

// One rank: 0F0 [0, 0.75/2 ms], 0F1 until 1 ms; backwards twice as long, the second slice first.
TEST(Slicing, TimesEachSliceByItsPlace)
{
    Plan plan = sliced(2, Slicing::Equal, 0.5);
    plan = withShape(std::move(plan), 1, 1);
    plan.pipeline.microbatches = 1;
    const traces::Trace trace = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
    const traces::Lane& lane = trace.lane(traces::LaneId{0});
    ASSERT_EQ(lane.size(), 4U);
    EXPECT_EQ(lane.end(0), 375'000);
    EXPECT_EQ(lane.end(1), 1'000'000);
    EXPECT_EQ(lane.end(2), 2'250'000); // 0B1
    EXPECT_EQ(lane.end(3), 3'000'000);
}

TEST(Slicing, KeepsWhatIsAsLongAsTheSlice)
{
    Plan plan = sliced(2, Slicing::Balanced, 0.5);
    plan = withShape(std::move(plan), 1, 1);
    plan.pipeline.microbatches = 1;
    const traces::Trace trace = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
    const traces::MemorySeries& held = *trace.memorySeries(traces::Rank{0}, traces::MemoryClass::Activations);
    EXPECT_EQ(held.valueAt(100'000), 618'034);
    EXPECT_EQ(held.valueAt(600'000), 1'000'000);
    EXPECT_EQ(held.value.back(), 0);
}

// A block of width d with f = 4d over s positions: 24 d^2 + 4 s d FLOPs a position, of which 4 s d are attention's.
TEST(Slicing, TakesTheShareOfAttentionFromAModel)
{
    Plan plan = sliced(2, Slicing::Equal, std::nullopt);
    plan.model.layers = {Embedding{10, 96, 64}, TransformerBlock{64, 4, 256}};
    plan.model.microbatchRows = 1;
    plan = withShape(std::move(plan), 1, 1);
    plan.costs.source = CostSource::Model;
    const double embedding = 64;
    const double attention = 4.0 * 96 * 64;
    const double share = attention / (24.0 * 64 * 64 + attention + embedding);
    const CostTable costs = costsOf(plan).value();
    ASSERT_EQ(costs.sliceTime.size(), 2U);
    EXPECT_NEAR(costs.sliceTime[0], 1 - share / 2, 1e-12);
    plan.costs.attentionShare = 0;
    EXPECT_TRUE(costsOf(plan).value().sliceTime.empty()) << "what the plan says goes first";
}

TEST(Slicing, IsPartOfAPlan)
{
    const Plan plan = sliced(4, Slicing::Balanced, 0.25);
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    Plan wrong = plan;
    wrong.costs.attentionShare = 1.5;
    EXPECT_THAT(checkPlan(wrong).error().message, HasSubstr("attention_share is 1.5; 0 to 1 is allowed"));
}

} // namespace
