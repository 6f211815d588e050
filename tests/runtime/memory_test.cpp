// SPDX-License-Identifier: Apache-2.0
//
// Memory by rank and class, to the byte.
#include "tests/runtime/run_plan.h"

#include "engine/simulate/simulate.h"
#include "traces/analysis/memory_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Bytes;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::MemorySeries;
using traces::Rank;
using traces::TimeNs;

Bytes valueAt(const Outcome& outcome, int rank, MemoryClass memory, TimeNs time)
{
    const MemorySeries* series = outcome.trace.memorySeries(Rank{rank}, memory);
    return series == nullptr ? 0 : series->valueAt(time);
}

// Parameters of a rank, from the model's counts.
std::int64_t parametersOf(const Plan& plan, int rank)
{
    const std::vector<LayerCounts> layers = layerCounts(plan.model);
    const Partition partition = partitionOf(plan).value();
    const Schedule schedule = scheduleOf(plan).value();
    std::int64_t parameters = 0;
    std::size_t layer = 0;
    for (std::size_t s = 0; s < partition.size(); ++s) {
        for (int i = 0; i < partition[s]; ++i, ++layer) {
            if (schedule.stageToRank[s] == Rank{rank}) parameters += layers[layer].parameters;
        }
    }
    return parameters;
}

class MemoryOf : public testing::TestWithParam<std::tuple<std::string, RunMode, Precision>> {
protected:
    [[nodiscard]] Plan plan() const
    {
        Plan result = preset(std::get<0>(GetParam()));
        result.run.mode = std::get<1>(GetParam());
        result.run.precision = std::get<2>(GetParam());
        result.run.steps = 2;
        result.run.check = CheckMode::First; // the check must not show in the ranks' memory
        return result;
    }
};

TEST_P(MemoryOf, EachClassHoldsWhatItsNameSaysToTheByte)
{
    const Plan plan = this->plan();
    const Outcome outcome = runPlan(plan);
    ASSERT_EQ(outcome.last, SessionState::Finished);
    for (int r = 0; r < plan.pipeline.ranks; ++r) {
        const Bytes floats = 4 * parametersOf(plan, r);
        const bool coarse = plan.run.precision == Precision::Bf16;
        const Bytes weights = coarse ? floats / 2 : floats;
        const Lane& lane = outcome.trace.lane(*outcome.trace.findLane(Rank{r}, LaneKind::Compute));
        int optimizers = 0;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (lane.action(i).kind() != ActionKind::Optimizer) continue;
            ++optimizers;
            EXPECT_EQ(valueAt(outcome, r, MemoryClass::Weights, lane.end(i)), weights);
            EXPECT_EQ(valueAt(outcome, r, MemoryClass::Gradients, lane.begin(i)), floats) << "after the last backward";
            EXPECT_EQ(valueAt(outcome, r, MemoryClass::Gradients, lane.end(i)), 0) << "after the optimizer";
            EXPECT_EQ(valueAt(outcome, r, MemoryClass::Activations, lane.end(i)), 0);
            // two moments a weight, in bf16 its main copy, and a step counter of 4 bytes for each parameter
            const Bytes optimizer = valueAt(outcome, r, MemoryClass::Optimizer, lane.end(i));
            EXPECT_GT(optimizer, (coarse ? 3 : 2) * floats);
            EXPECT_LT(optimizer, (coarse ? 3 : 2) * floats + 4 * 200);
        }
        EXPECT_EQ(optimizers, 2);
        const MemorySeries* activations = outcome.trace.memorySeries(Rank{r}, MemoryClass::Activations);
        ASSERT_NE(activations, nullptr);
        EXPECT_GT(*std::max_element(activations->value.begin(), activations->value.end()), 0);
        EXPECT_GE(*std::min_element(activations->value.begin(), activations->value.end()), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Presets, MemoryOf,
                         testing::Combine(testing::Values("hello", "mlp", "gpt-small"),
                                          testing::Values(RunMode::Threads, RunMode::Emulated), testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto& each) {
                             std::string name = std::get<0>(each.param) + "_";
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name + std::string(runModeText(std::get<1>(each.param))) + (std::get<2>(each.param) == Precision::Bf16 ? "_bf16" : "");
                         });

// A rank has so much memory, and an allocation beyond it fails as on a device. Real runs of the presets that tell this, and their
// simulations, which say the same before.
struct StoryCase {
    const char* name;
    bool fits;
    const char* failsIn; // what cannot be had
};

class MemoryStory : public testing::TestWithParam<StoryCase> {};

TEST_P(MemoryStory, EndsAsTheSimulationSays)
{
    const StoryCase& story = GetParam();
    const Plan plan = preset(story.name);
    const Outcome outcome = runPlan(plan, {.cpuClock = &monotonicClock()});
    EXPECT_EQ(outcome.last, story.fits ? SessionState::Finished : SessionState::Failed);
    if (story.fits) {
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
        for (const traces::MemoryPeak& peak : traces::memoryPeaks(outcome.trace, traces::Step{1})) {
            EXPECT_LE(peak.bytes, plan.machine.memory);
            EXPECT_GT(peak.bytes, 0);
        }
    } else {
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr(story.failsIn));
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("the rank has 32 MiB of memory and holds"));
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("more do not fit"));
    }
    EXPECT_EQ(outcome.trace.info.memoryLimit, plan.machine.memory);

    const traces::Trace simulated = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
    const std::vector<traces::MemoryPeak> peaks = traces::memoryPeaks(simulated, traces::Step{0});
    EXPECT_EQ(std::any_of(peaks.begin(), peaks.end(), [](const traces::MemoryPeak& peak) { return peak.runsOut.has_value(); }), !story.fits);
}

INSTANTIATE_TEST_SUITE_P(Presets, MemoryStory,
                         testing::Values(StoryCase{"memory-1-rank", false, "failed"}, StoryCase{"memory-4-ranks", true, ""},
                                         StoryCase{"memory-gpipe", false, "0F"}, StoryCase{"memory-gpipe-recompute", true, ""}),
                         [](const auto& each) {
                             std::string name = each.param.name;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

// GPipe keeps all micro-batches until the backwards, 1F1B at most p: real memory, not a count.
TEST(Memory, OneFOneBHoldsLessThanGPipe)
{
    const auto peak = [](const char* schedule) {
        Plan plan = preset("mlp");
        plan.pipeline.schedule = schedule;
        plan.pipeline.microbatches = 16;
        plan.run.mode = RunMode::Emulated;
        plan.run.steps = 1;
        const Outcome outcome = runPlan(plan);
        const MemorySeries* series = outcome.trace.memorySeries(Rank{0}, MemoryClass::Activations);
        return series == nullptr ? Bytes{0} : *std::max_element(series->value.begin(), series->value.end());
    };
    const Bytes gpipe = peak("gpipe");
    const Bytes oneFOneB = peak("1f1b");
    EXPECT_GT(oneFOneB, 0);
    // 16 micro-batches against 4, but for the short-lived blocks of one forward
    EXPECT_GT(static_cast<double>(gpipe), 3.0 * static_cast<double>(oneFOneB));
}

} // namespace
} // namespace stagecraft::runtime
