// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/closed_forms.h"
#include "unit_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

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

using FormMember = std::optional<ClosedForm> ClosedForms::*;
constexpr FormMember kForms[] = {&ClosedForms::makespan,   &ClosedForms::span,            &ClosedForms::bubbleMakespan,
                                 &ClosedForms::bubbleSpan, &ClosedForms::bubbleOverIdeal, &ClosedForms::peakActivations};
constexpr const char* kFormNames[] = {"makespan", "span", "bubble of the makespan", "bubble of the span", "bubble over ideal", "peak activations"};

// What a family has forms for.
enum class Has : std::uint8_t { All, NoPeak, PeakAlone };

struct Case {
    const char* schedule;
    int chunks = 1;
    int slices = 1;
    Has has = Has::All;
    Recompute recompute = Recompute::None;
};

// What was simulated, in the order of kForms.
std::array<double, 6> figuresOf(const Schedule& schedule, const CostTable& costs)
{
    const traces::StepFigures figures = test::figuresOf(schedule, costs);
    double peak = 0;
    for (const traces::RankFigures& rank : figures.ranks) peak = std::max(peak, rank.peakActivations);
    return {static_cast<double>(figures.makespan), static_cast<double>(figures.maxSpan), figures.bubbleMakespan, figures.bubbleSpan,
            figures.bubbleOverIdeal,               peak};
}

class ClosedFormsAgainstSimulation : public testing::TestWithParam<Case> {};

// Times in proportion to each other, hops from none to twice a forward and a backward, and numbers of micro-batches with every remainder.
TEST_P(ClosedFormsAgainstSimulation, AgreeWhereTheyAreGiven)
{
    const Case& given = GetParam();
    std::array<int, 6> compared{};
    for (const auto& [forward, input, weight] : {std::tuple{60, 60, 60}, {150, 120, 90}, {60, 120, 60}, {180, 90, 90}, {120, 60, 60}})
        for (const int transfer : {0, 3, 7, 15, 30, 45, 60, 90, 120, 121, 180, 240, 480, 720})
            for (const int p : {1, 2, 3, 4, 6})
                for (const int m : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 18, 24}) {
                    PipelineSpec pipeline = pipelineOf(given.schedule, p, given.chunks, m, given.slices);
                    pipeline.recompute = given.recompute;
                    const ScheduleRequest request = requestOf(pipeline);
                    if (!checkRequest(request).ok()) continue;
                    SCOPED_TRACE(testing::Message() << given.schedule << " p=" << p << " m=" << m << " F=" << forward << " I=" << input
                                                    << " W=" << weight << " c=" << transfer);
                    const int parts = given.chunks * pipeline.parts();
                    CostTable costs;
                    costs.stages.assign(static_cast<std::size_t>(p * given.chunks), {.forward = forward / parts,
                                                                                     .backward = (input + weight) / parts,
                                                                                     .inputGrad = input / parts,
                                                                                     .weightGrad = weight / parts,
                                                                                     .overlap = (forward + input + weight) / parts});
                    costs.transfer = transfer;
                    const ClosedForms forms = formsBeside(pipeline, costs);
                    if (transfer > 0 && !forms.makespan && !forms.span) continue; // the peak alone was compared without
                    Schedule schedule = generate(request).value();
                    if (given.recompute == Recompute::Full) schedule = withRecompute(std::move(schedule));
                    const std::array<double, 6> simulated = figuresOf(schedule, costs);
                    for (std::size_t i = 0; i < compared.size(); ++i) {
                        const std::optional<ClosedForm>& form = forms.*kForms[i];
                        if (!form) continue;
                        EXPECT_NEAR(form->value, simulated[i], 1e-6 * std::max(1.0, simulated[i])) << kFormNames[i] << " = " << form->text;
                        ++compared[i];
                    }
                }
    for (std::size_t i = 0; i < compared.size(); ++i) {
        const bool peak = kForms[i] == &ClosedForms::peakActivations;
        const bool expected = given.has == Has::All || peak == (given.has == Has::PeakAlone);
        EXPECT_EQ(compared[i] > 0, expected) << kFormNames[i] << ": " << compared[i];
    }
}

INSTANTIATE_TEST_SUITE_P(Schedules, ClosedFormsAgainstSimulation,
                         testing::Values(Case{"naive"}, Case{"gpipe"}, Case{"gpipe-lifo"}, Case{"1f1b"}, Case{"eager-1f1b"},
                                         Case{"interleaved", 2}, Case{"interleaved", 3}, Case{"looped-bfs", 2}, Case{"zb-h1"}, Case{"zb-h2"},
                                         Case{"interleaved-zb", 2}, Case{"zb-v", 2}, Case{"v-half", 2, 1, Has::PeakAlone},
                                         Case{"v-min", 2, 1, Has::PeakAlone}, Case{"dualpipe"}, Case{"dualpipe-v", 2},
                                         Case{"chimera", 1, 1, Has::NoPeak}, Case{"seq1f1b", 1, 2},
                                         Case{"seq1f1b", 1, 3}, Case{"forward-only"}));

INSTANTIATE_TEST_SUITE_P(Recomputing, ClosedFormsAgainstSimulation,
                         testing::Values(Case{"naive", 1, 1, Has::All, Recompute::Full}, Case{"gpipe", 1, 1, Has::All, Recompute::Full},
                                         Case{"gpipe-lifo", 1, 1, Has::All, Recompute::Full}, Case{"1f1b", 1, 1, Has::All, Recompute::Full},
                                         Case{"eager-1f1b", 1, 1, Has::All, Recompute::Full},
                                         Case{"interleaved", 2, 1, Has::PeakAlone, Recompute::Full},
                                         Case{"zb-h2", 1, 1, Has::PeakAlone, Recompute::Full},
                                         Case{"seq1f1b", 1, 2, Has::PeakAlone, Recompute::Full}));

// By hand: (8+4-1)(1+2) + 8·1 = 41, of which 8·4 are work.
TEST(ClosedForms, CountWhatIsComputedAgain)
{
    PipelineSpec pipeline = pipelineOf("gpipe", 4, 1, 8);
    pipeline.recompute = Recompute::Full;
    EXPECT_DOUBLE_EQ(closedForms(pipeline, FormTimes{}).makespan->value, 41);
    EXPECT_DOUBLE_EQ(closedForms(pipeline, FormTimes{}).bubbleMakespan->value, 1 - 32.0 / 41);
    EXPECT_FALSE(closedForms(pipeline).bubbleMakespan); // it depends on the times
    EXPECT_FALSE(closedForms(pipeline, FormTimes{.transfer = 0.5}).makespan);
    EXPECT_FALSE(bestMicrobatchSize(pipeline, 64, 1, 1));
}

// F = 1, B = 2, p = 2, m = 8: an independent event simulation gave 33 for hops of 2, where 2(p-1)c would make 31.
TEST(ClosedForms, EndWhereALongHopIsWaitedForInTheSteadyState)
{
    const PipelineSpec pipeline = pipelineOf("eager-1f1b", 2, 1, 8);
    EXPECT_DOUBLE_EQ(closedForms(pipeline, FormTimes{.transfer = 1.5}).makespan->value, 30);
    EXPECT_FALSE(closedForms(pipeline, FormTimes{.transfer = 2}).makespan);
    EXPECT_EQ(test::figuresOf(test::made("eager-1f1b", 2, 8), test::slotCosts(2, 1, 2, 2)).makespan, 33);
}

// What makes a step longer than a form says leaves the form out; the peak is the order's and stays.
TEST(ClosedForms, AreNoneBesideWhatTheyDoNotSpeakOf)
{
    const PipelineSpec pipeline = pipelineOf("1f1b", 4, 1, 8);
    const CostTable plain = test::slotCosts(4, 1, 2);
    const auto given = [&](const CostTable& costs) {
        const ClosedForms forms = formsBeside(pipeline, costs);
        EXPECT_EQ(forms.peakActivations->value, 4);
        EXPECT_EQ(forms.makespan.has_value(), forms.bubbleMakespan.has_value());
        return forms.makespan.has_value();
    };
    EXPECT_TRUE(given(plain));
    const std::pair<const char*, void (*)(CostTable&)> changes[] = {
        {"factors of ranks", [](CostTable& costs) { costs.machine.rankScale = {1, 1, 2, 1}; }},
        {"late starts", [](CostTable& costs) { costs.machine.lateStart = {0, 5, 0, 0}; }},
        {"nodes", [](CostTable& costs) { costs.machine.ranksPerNode = 2; }},
        {"transfers that occupy", [](CostTable& costs) { costs.machine.transfers = TransferPlace::Ranks; }},
        {"shared links", [](CostTable& costs) { costs.machine.sharedLinks = true; }},
        {"sends that wait", [](CostTable& costs) { costs.machine.send = SendMode::Rendezvous; }},
        {"replicas", [](CostTable& costs) { costs.machine.replicas = 2; }},
        {"a barrier", [](CostTable& costs) { costs.machine.barrier = true; }},
        {"sharding", [](CostTable& costs) { costs.sharding = Sharding::Zero2; }},
        {"slices of unequal time", [](CostTable& costs) { costs.sliceTime = {0.5, 1.5}; }},
        {"an update", [](CostTable& costs) { costs.stages[0].optimizer = 1; }},
        {"a long stage", [](CostTable& costs) { costs.stages[2].forward = 5; }},
        {"jitter", [](CostTable& costs) { costs.jitter = 0.1; }},
    };
    for (const auto& [what, change] : changes) {
        CostTable costs = plain;
        change(costs);
        EXPECT_FALSE(given(costs)) << what;
    }
    CostTable memory = plain; // what is only shown changes nothing
    memory.machine.memory = 1 << 30;
    memory.machine.host = {.latency = 5, .bytesPerSecond = 1e9};
    EXPECT_TRUE(given(memory));

    PipelineSpec offloaded = pipeline;
    offloaded.offload = 1;
    EXPECT_EQ(formsBeside(offloaded, plain), ClosedForms{});
    offloaded.schedule = "forward-only"; // has nothing to offload, and leaves the share alone
    EXPECT_TRUE(formsBeside(offloaded, plain).makespan);
}

TEST(ChimeraForms, HoldForForwardsAndBackwardsOfEqualTime)
{
    const FormTimes equal{.backward = 1};
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("chimera", 4, 1, 4), equal).makespan->value, 10); // arXiv 2107.06925: 2m+p-2
    EXPECT_DOUBLE_EQ(closedForms(pipelineOf("chimera", 8, 1, 16), equal).makespan->value, 38);
    EXPECT_FALSE(closedForms(pipelineOf("chimera", 8, 1, 16), FormTimes{}).makespan);
    for (const Concatenation how : {Concatenation::Doubling, Concatenation::Halving}) { // p=4, m=8: 27 ms of 28 by their slots
        PipelineSpec pipeline = pipelineOf("chimera", 4, 1, 8);
        pipeline.concatenation = how;
        EXPECT_EQ(closedForms(pipeline, equal), ClosedForms{});
        EXPECT_EQ(closedForms(pipeline, FormTimes{}), ClosedForms{});
    }
}

TEST(EqualTimes, AreThoseOfAWholeRank)
{
    CostTable costs = test::slotCosts(8, 5, 8);
    const FormTimes times = equalTimes(costs, pipelineOf("interleaved", 4, 2, 8)).value();
    EXPECT_EQ(times.forward, 10);
    EXPECT_EQ(times.backward, 16);
    costs.stages[3].forward = 9;
    EXPECT_FALSE(equalTimes(costs, pipelineOf("interleaved", 4, 2, 8)));
    costs = test::slotCosts(8, 5, 8);
    costs.jitter = 0.1;
    EXPECT_FALSE(equalTimes(costs, pipelineOf("interleaved", 4, 2, 8)));
    PipelineSpec halved = pipelineOf("chimera", 8, 1, 8);
    halved.concatenation = Concatenation::Halving; // a table of halves
    EXPECT_EQ(equalTimes(test::slotCosts(8, 5, 8), halved)->forward, 10);
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
