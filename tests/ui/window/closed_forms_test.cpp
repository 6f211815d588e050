// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/closed_forms.h"

#include "tests/ui/window/test_plans.h"
#include "ui/window/simulation_controller.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

// Megatron-LM's figures (arXiv 2104.04473 sec. 2.2) by hand: p = 4, m = 5 gives 3/8; p = 8, m = 70 gives 7/77.
TEST(ClosedForms, GiveTheBubblesOfThePapers)
{
    EXPECT_DOUBLE_EQ(bubbleMakespanForm(pipelineOf("1f1b", 4, 1, 5))->value, 0.375);
    EXPECT_DOUBLE_EQ(bubbleMakespanForm(pipelineOf("gpipe", 8, 1, 70))->value, 7.0 / 77);
    EXPECT_DOUBLE_EQ(bubbleOverIdealForm(pipelineOf("1f1b", 4, 1, 8))->value, 0.375);
    EXPECT_DOUBLE_EQ(bubbleOverIdealForm(pipelineOf("interleaved", 4, 2, 8))->value, 0.1875);
    EXPECT_DOUBLE_EQ(bubbleMakespanForm(pipelineOf("naive", 4, 1, 8))->value, 0.75);
    EXPECT_EQ(bubbleMakespanForm(pipelineOf("1f1b", 4, 1, 5))->text, "(p−1)/(m+p−1)");
}

TEST(ClosedForms, DoNotClaimWhatHoldsOnlyForWholeRounds)
{
    EXPECT_FALSE(bubbleMakespanForm(pipelineOf("interleaved", 4, 2, 10)));
    engine::PipelineSpec inGroups = pipelineOf("interleaved", 4, 2, 8);
    inGroups.group = 8;
    EXPECT_FALSE(bubbleMakespanForm(inGroups));
    EXPECT_FALSE(bubbleMakespanForm(pipelineOf("custom", 4, 1, 8)));
}

struct Case {
    const char* schedule;
    int ranks;
    int chunks;
    int microbatches;
};

class ClosedFormsAgainstSimulation : public testing::TestWithParam<Case> {};

TEST_P(ClosedFormsAgainstSimulation, AgreeForEqualStagesAndFreeTransfers)
{
    const engine::Plan plan =
        planOf(pipelineOf(GetParam().schedule, GetParam().ranks, GetParam().chunks, GetParam().microbatches));
    const traces::Expected<Simulation> simulation = simulatePlan(plan);
    ASSERT_TRUE(simulation.ok()) << simulation.error().message;
    const traces::StepFigures& figures = simulation.value().figures;
    EXPECT_NEAR(figures.bubbleMakespan, bubbleMakespanForm(plan.pipeline)->value, 1e-9);
    EXPECT_NEAR(figures.bubbleOverIdeal, bubbleOverIdealForm(plan.pipeline)->value, 1e-9);
    EXPECT_NEAR(static_cast<double>(figures.makespan), makespanForm(plan.pipeline, 1e6, 2e6)->value, 1);
    double peak = 0;
    for (const traces::RankFigures& rank : figures.ranks) peak = std::max(peak, rank.peakActivations);
    EXPECT_NEAR(peak, peakActivationsForm(plan.pipeline)->value, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ClosedFormsAgainstSimulation,
                         testing::Values(Case{"naive", 4, 1, 6}, Case{"gpipe", 4, 1, 8}, Case{"gpipe", 8, 1, 3}, Case{"1f1b", 4, 1, 8},
                                         Case{"1f1b", 8, 1, 70}, Case{"1f1b", 8, 1, 3}, Case{"1f1b", 1, 1, 4},
                                         Case{"interleaved", 4, 2, 8}, Case{"interleaved", 2, 4, 6}, Case{"interleaved", 4, 2, 4}));

} // namespace
} // namespace stagecraft::ui
