// SPDX-License-Identifier: Apache-2.0
//
// Tied embeddings live: every family, both modes, any place of the two ends.
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include "engine/model/tied.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::Rank;

Plan tiedTransformer(const std::string& schedule, int ranks, int chunks, int microbatches, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.model.tiedEmbeddings = true;
    plan.pipeline.microbatches = microbatches;
    return plan;
}

std::vector<FamilyCase> everyFamily()
{
    std::vector<FamilyCase> cases = everyFamilyCase(4);
    std::erase_if(cases, [](const FamilyCase& each) { return findFamily(each.name)->asynchronous; });
    return cases;
}

class TiedFamily : public testing::TestWithParam<FamilyCase> {};

// The check compares the gradients of both copies with the sum of all gradients of the two uses, to the bit.
TEST_P(TiedFamily, TrainsBothCopiesWithTheGradientsOfTheSharedTable)
{
    const auto& [name, ranks, chunks, microbatches, mode, precision] = GetParam();
    Plan plan = tiedTransformer(name, ranks, chunks, microbatches, mode);
    plan.run.precision = precision;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    if (name == "forward-only") return;
    EXPECT_LT(outcome.result->loss.back(), outcome.result->loss.front());

    const Schedule schedule = scheduleOf(plan).value();
    std::map<int, int> sums; // of a step, by rank
    for (const traces::Flow flow : schedule.flows()) {
        const int first = schedule.rankOf(flow, Stage{0}).value;
        const int last = schedule.rankOf(flow, Stage{schedule.stages() - 1}).value;
        ++sums[first];
        if (last != first) ++sums[last];
    }
    if (schedule.twoDirections()) // and each stage's, between its two directions
        for (int s = 0; s < schedule.stages(); ++s)
            for (const traces::Flow flow : schedule.flows()) ++sums[schedule.rankOf(flow, Stage{s}).value];
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto lane = outcome.trace.findLane(Rank{r}, LaneKind::Collective);
        EXPECT_EQ(lane ? static_cast<int>(outcome.trace.lane(*lane).size()) : 0, plan.run.steps * sums[r]) << "rank " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(Runtime, TiedFamily, testing::ValuesIn(everyFamily()),
                         [](const auto& each) { return caseName(each.param.name, each.param.mode, each.param.precision); });

// One parameter, two copies on two ranks, or two on one: the same training, to the bit.
TEST(TiedEmbeddings, TrainAlikeWhereverTheTwoEndsLie)
{
    const std::vector<double> expected = runPlan(tiedTransformer("1f1b", 1, 1, 4, RunMode::Threads)).result->loss;
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        EXPECT_EQ(runPlan(tiedTransformer("gpipe", 1, 1, 4, mode)).result->loss, expected);
        EXPECT_EQ(runPlan(tiedTransformer("1f1b", 2, 1, 4, mode)).result->loss, expected);
        EXPECT_EQ(runPlan(tiedTransformer("1f1b", 4, 1, 4, mode)).result->loss, expected);
        EXPECT_EQ(runPlan(tiedTransformer("hanayo", 2, 2, 4, mode)).result->loss, expected);
    }
    Plan apart = tiedTransformer("1f1b", 2, 1, 4, RunMode::Threads);
    apart.model.tiedEmbeddings = false;
    EXPECT_NE(runPlan(apart).result->loss, expected);
}

TEST(TiedEmbeddings, TrainAlikeWithSlicesAndRecomputation)
{
    Plan plan = tiedTransformer("seq1f1b", 2, 1, 4, RunMode::Threads);
    const std::vector<double> expected = runPlan(plan).result->loss;
    plan.pipeline.recompute = Recompute::Full;
    EXPECT_EQ(runPlan(plan).result->loss, expected);
    plan.pipeline.slices = 3;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
    EXPECT_NEAR(outcome.result->loss.back(), expected.back(), 1e-4);
}

// To the byte: in one stage the table is there once, in several the first and the last have it.
TEST(TiedEmbeddings, HoldTheTableOnceInOneStage)
{
    for (const int ranks : {1, 2}) {
        const Plan plan = tiedTransformer("1f1b", ranks, 1, 4, RunMode::Emulated);
        const Outcome outcome = runPlan(plan);
        Bytes weights = 0;
        for (int r = 0; r < ranks; ++r) weights += outcome.trace.memorySeries(Rank{r}, traces::MemoryClass::Weights)->value.back();
        std::int64_t parameters = 0;
        for (const LayerCounts& layer : heldCounts(plan.model, static_cast<std::size_t>(ranks))) parameters += layer.parameters;
        EXPECT_EQ(weights, 4 * parameters) << ranks;
    }
}

// 2 (latency + half the table / bandwidth), as simulated.
TEST(TiedEmbeddings, TakeTheTimeOfTheWayInAnEmulation)
{
    Plan plan = tiedTransformer("1f1b", 2, 1, 4, RunMode::Emulated);
    plan.run.steps = 6;
    plan.run.check = CheckMode::First;
    plan.costs.latency = 1'000'000;
    plan.costs.bandwidth = 1e6;
    const ManualClock even(10'000);
    const Outcome outcome = runPlan(plan, {.clock = &even, .cpuClock = &even});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    const Lane& lane = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Collective));
    const traces::TimeNs way = 2'000'000 + 4 * 50 * 32 * 1000;
    ASSERT_EQ(lane.size(), 6U);
    for (std::size_t i = 0; i < lane.size(); ++i) EXPECT_GE(lane.end(i) - lane.begin(i), way);
    const auto measured = static_cast<double>(outcome.result->stepNs);
    EXPECT_NEAR(static_cast<double>(outcome.result->predictedStepNs), measured, 0.05 * measured);
}

TEST(TiedEmbeddings, NeedAScheduleThatLeavesTheUpdateToTheEnd)
{
    Plan plan = tiedTransformer("1f1b", 2, 1, 1, RunMode::Threads);
    plan.pipeline.schedule = "custom";
    plan.pipeline.customSchedule = "0F0,0B0,0OPTIMIZER\n1F0,1B0,1OPTIMIZER\n";
    const auto started = makeLocalSession()->start(plan);
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, testing::HasSubstr("the two copies of a tied table"));
}

} // namespace
} // namespace stagecraft::runtime
