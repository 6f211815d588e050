// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/closed_forms.h"
#include "unit_costs.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::engine {
namespace {

PipelineSpec pipelineOf(const char* schedule, int ranks, int chunks, int microbatches, int slices = 1)
{
    PipelineSpec pipeline;
    pipeline.schedule = schedule;
    pipeline.ranks = ranks;
    pipeline.chunks = chunks;
    pipeline.microbatches = microbatches;
    pipeline.slices = slices;
    return pipeline;
}

// Megatron-LM's figures (arXiv 2104.04473 sec. 2.2) by hand: p = 4, m = 5 gives 3/8; p = 8, m = 70 gives 7/77.
TEST(ClosedForms, GiveTheBubblesOfThePapers)
{
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("1f1b", 4, 1, 5)).bubbleMakespan->value, 0.375);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("gpipe", 8, 1, 70)).bubbleMakespan->value, 7.0 / 77);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("1f1b", 4, 1, 8)).bubbleOverIdeal->value, 0.375);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("interleaved", 4, 2, 8)).bubbleOverIdeal->value, 0.1875);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("naive", 4, 1, 8)).bubbleMakespan->value, 0.75);
    EXPECT_EQ(closedForms(pipelineOf("1f1b", 4, 1, 5)).bubbleMakespan->text, "(p−1)/(m+p−1)");
    EXPECT_FALSE(closedForms(pipelineOf("1f1b", 4, 1, 5)).makespan); // no times were given
}

TEST(ClosedForms, DoNotClaimWhatHoldsOnlyUnderConditions)
{
    EXPECT_FALSE(closedForms(pipelineOf("interleaved", 4, 2, 10)).bubbleMakespan);
    PipelineSpec inGroups = pipelineOf("interleaved", 4, 2, 8);
    inGroups.group = 8;
    EXPECT_FALSE(closedForms(inGroups).bubbleMakespan);
    EXPECT_FALSE(closedForms(pipelineOf("custom", 4, 1, 8)).bubbleMakespan);
    EXPECT_FALSE(closedForms(pipelineOf("zb-h1", 4, 1, 8)).bubbleMakespan); // it depends on the times
    EXPECT_FALSE(closedForms(pipelineOf("zb-h1", 4, 1, 8), FormTimes{.weightGrad = 3, .backward = 4}).makespan);
    EXPECT_FALSE(closedForms(pipelineOf("1f1b", 3, 1, 7), FormTimes{.transfer = 0.5}).makespan);
}

// Zero Bubble paper (arXiv 2401.10241), table 9 row 1 gives the times in ms, table 5 the rates.
TEST(ClosedForms, GiveTheZeroBubblePapersRates)
{
    const FormTimes times{
        .forward = 18.522, .inputGrad = 18.086, .weightGrad = 9.337, .backward = 18.086 + 9.337, .overlap = 100, .transfer = 0.601};
    EXPECT_NEAR(closedForms(pipelineOf("1f1b", 8, 1, 24), times).bubbleMakespan->value, 0.2431, 5e-5);
    EXPECT_NEAR(closedForms(pipelineOf("zb-h1", 8, 1, 24), times).bubbleMakespan->value, 0.1585, 5e-5);
    EXPECT_NEAR(closedForms(pipelineOf("zb-h2", 8, 1, 24), times).bubbleSpan->value, 0.1083, 5e-5);
}

// DualPipe's README: 8 ranks, 20 micro-batches, F = I = W = 1 and pairs of 3: (8/2-1)(3+2-3) slots above the work of 60.
TEST(ClosedForms, GiveDualPipesStep)
{
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("dualpipe", 8, 1, 20), FormTimes{}).makespan->value, 66);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("dualpipe-v", 4, 2, 10), FormTimes{.forward = 2, .inputGrad = 2, .weightGrad = 2, .backward = 4,
                                                                               .overlap = 6})
                         .makespan->value,
                     66);
}

// What an independent event simulation gave for hops of half a forward (reference tables of the latency lesson).
TEST(ClosedForms, CountTheHopsThatAStepWaitsFor)
{
    const FormTimes half{.transfer = 0.5};
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("1f1b", 4, 1, 8), half).makespan->value, 41);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("1f1b", 8, 1, 32), half).makespan->value, 151);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("gpipe", 4, 1, 8), half).makespan->value, 36);
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("eager-1f1b", 8, 1, 32), half).makespan->value, 124);
}

struct Case {
    const char* schedule;
    int chunks;
    int slices = 1;
};

class ClosedFormsAgainstSimulation : public testing::TestWithParam<Case> {};

void expectForm(const std::optional<ClosedForm>& form, double simulated, const char* what)
{
    if (!form) return;
    EXPECT_NEAR(form->value, simulated, 1e-6 * std::max(1.0, simulated)) << what << " = " << form->text;
}

TEST_P(ClosedFormsAgainstSimulation, AgreeWhereTheyAreGiven)
{
    const Case& given = GetParam();
    int compared = 0;
    for (const auto& [forward, input, weight] : {std::tuple{60, 60, 60}, {150, 120, 90}, {60, 120, 60}, {180, 90, 90}})
        for (const int transfer : {0, 3})
            for (const int p : {2, 3, 4, 6})
                for (const int m : {2, 4, 6, 8, 12, 18, 24}) {
                    const ScheduleRequest request{
                        .name = given.schedule, .ranks = p, .chunks = given.chunks, .microbatches = m, .slices = given.slices};
                    if (!checkRequest(request).ok()) continue;
                    SCOPED_TRACE(testing::Message() << given.schedule << " p=" << p << " m=" << m << " F=" << forward << " I=" << input
                                                    << " W=" << weight << " c=" << transfer);
                    const int parts = given.chunks * given.slices;
                    CostTable costs;
                    costs.stages.assign(static_cast<std::size_t>(p * given.chunks), {.forward = forward / parts,
                                                                                     .backward = (input + weight) / parts,
                                                                                     .inputGrad = input / parts,
                                                                                     .weightGrad = weight / parts,
                                                                                     .overlap = (forward + input + weight) / parts});
                    costs.transfer = transfer;
                    const Schedule schedule = generate(request).value();
                    const traces::StepFigures figures = test::figuresOf(schedule, costs);
                    const ClosedForms forms =
                        closedForms(pipelineOf(given.schedule, p, given.chunks, m, given.slices), equalTimes(costs, given.chunks, given.slices));
                    double peak = 0;
                    for (const traces::RankFigures& rank : figures.ranks) peak = std::max(peak, rank.peakActivations);
                    expectForm(forms.makespan, static_cast<double>(figures.makespan), "makespan");
                    expectForm(forms.span, static_cast<double>(figures.maxSpan), "span");
                    expectForm(forms.bubbleMakespan, figures.bubbleMakespan, "bubble of the makespan");
                    expectForm(forms.bubbleSpan, figures.bubbleSpan, "bubble of the span");
                    expectForm(forms.bubbleOverIdeal, figures.bubbleOverIdeal, "bubble over ideal");
                    expectForm(forms.peakActivations, peak, "peak activations");
                    if (forms.makespan || forms.peakActivations) ++compared;
                }
    EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ClosedFormsAgainstSimulation,
                         testing::Values(Case{"naive", 1}, Case{"gpipe", 1}, Case{"gpipe-lifo", 1}, Case{"1f1b", 1}, Case{"eager-1f1b", 1},
                                         Case{"interleaved", 2}, Case{"interleaved", 3}, Case{"looped-bfs", 2}, Case{"zb-h1", 1},
                                         Case{"zb-h2", 1}, Case{"interleaved-zb", 2}, Case{"zb-v", 2}, Case{"v-half", 2}, Case{"v-min", 2},
                                         Case{"dualpipe", 1}, Case{"dualpipe-v", 2}, Case{"chimera", 1}, Case{"seq1f1b", 1, 2},
                                         Case{"seq1f1b", 1, 3}, Case{"forward-only", 1}));

TEST(ChimeraForms, HoldForForwardsAndBackwardsOfEqualTime)
{
    const FormTimes equal{.backward = 1};
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("chimera", 4, 1, 4), equal).makespan->value, 10); // arXiv 2107.06925: 2m+p-2
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("chimera", 8, 1, 16), equal).makespan->value, 38);
    EXPECT_FALSE(closedForms(pipelineOf("chimera", 8, 1, 16), FormTimes{}).makespan);
}

TEST(EqualTimes, AreThoseOfAWholeRank)
{
    CostTable costs = test::slotCosts(8, 5, 8);
    const FormTimes times = equalTimes(costs, 2, 1).value();
    EXPECT_EQ(times.forward, 10);
    EXPECT_EQ(times.backward, 16);
    costs.stages[3].forward = 9;
    EXPECT_FALSE(equalTimes(costs, 2, 1));
    costs = test::slotCosts(8, 5, 8);
    costs.jitter = 0.1;
    EXPECT_FALSE(equalTimes(costs, 2, 1));
}

TEST(BestMicrobatchSize, IsWhereTheDerivativeOfTheStepsTimeIsZero)
{
    // T(b) = (B/b + p-1)(2α + 2βb), written out and searched in steps of a hundredth
    const double B = 512, fixed = 30, perSample = 7;
    const int p = 5;
    double best = 0;
    double least = 1e300;
    for (double b = 1; b < 512; b += 0.01) {
        const double time = (B / b + p - 1) * (2 * fixed + 2 * perSample * b);
        if (time < least) std::tie(least, best) = std::pair(time, b);
    }
    EXPECT_NEAR(bestMicrobatchSize(pipelineOf("1f1b", p, 1, 8), B, fixed, perSample)->value, best, 0.01);
    EXPECT_FALSE(bestMicrobatchSize(pipelineOf("zb-auto", p, 1, 8), B, fixed, perSample));
    EXPECT_FALSE(bestMicrobatchSize(pipelineOf("1f1b", 1, 1, 8), B, fixed, perSample));
}

TEST(SpeedupLaws, AreAmdahlsAndGustafsons)
{
    EXPECT_NEAR(amdahlSpeedup(0.05, 1e9), 20, 1e-5); // never more than 1/s
    EXPECT_DOUBLE_EQ(amdahlSpeedup(0.5, 2), 4.0 / 3);
    EXPECT_DOUBLE_EQ(gustafsonSpeedup(0.05, 64), 0.05 + 0.95 * 64);
    // GPipe with m micro-batches on p ranks is m·p/(m+p-1) times as fast as one rank (GPipe, arXiv 1811.06965): Amdahl's law with s = 1/m
    EXPECT_DOUBLE_EQ(amdahlSpeedup(1.0 / 8, 4), 8.0 * 4 / 11);
}

} // namespace
} // namespace stagecraft::engine
