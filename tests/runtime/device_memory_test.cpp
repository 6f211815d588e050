// SPDX-License-Identifier: Apache-2.0
//
// What a run tells of the memory of its GPUs, beside what these say themselves (fake_gpu/fake_gpu.h).
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/team.h"

#include "traces/analysis/gpu_memory.h"
#include "traces/format/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using traces::Bytes;
using traces::GpuMemory;
using traces::GpuPeak;
using traces::GpuSeries;
using traces::Rank;

constexpr Bytes kTotal = Bytes{1} << 30;
constexpr Bytes kBesides = 300'000'000; // of a context, and of who else is there

Plan small(int ranks)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{16, 16, Activation::Relu});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = "1f1b", .ranks = ranks, .chunks = 1, .microbatches = 4, .customSchedule = {}};
    plan.run.steps = 3;
    plan.run.check = CheckMode::Off;
    return plan;
}

// What the device says itself: the most that was in use, and what is reserved at the end.
void expectTruth(const GpuSeries& series, const GpuPeak& peak, int gpu)
{
    const FakeGpus::Memory truth = FakeGpus::get().memory(gpu);
    EXPECT_EQ(peak.active, truth.mostActive);
    EXPECT_EQ(peak.reserved, truth.reserved);
    EXPECT_EQ(peak.other, kBesides);
    EXPECT_EQ(peak.used, truth.reserved + kBesides);
    for (const GpuMemory& now : series.value) {
        EXPECT_LE(now.active, now.reserved);
        EXPECT_EQ(now.other(), kBesides);
        EXPECT_EQ(now.reserved % FakeGpus::kSegment, 0);
    }
    EXPECT_TRUE(std::ranges::is_sorted(series.time));
}

TEST(GpuMemoryOfARun, IsThatOfEachGpuThoughRanksShareIt)
{
    const Outcome outcome = runOn({.count = 2, .memory = kTotal, .besides = kBesides}, small(4));
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    const std::vector<GpuSeries>& gpus = outcome.trace.gpus();
    const std::vector<GpuPeak> peaks = traces::gpuPeaks(outcome.trace);
    ASSERT_THAT(gpus, SizeIs(2));
    ASSERT_THAT(peaks, SizeIs(2));
    for (int g = 0; g < 2; ++g) {
        const GpuSeries& series = gpus[static_cast<std::size_t>(g)];
        EXPECT_EQ(series.gpu.number, g);
        EXPECT_EQ(series.gpu.name, "fake GPU");
        EXPECT_EQ(series.gpu.bus, "bus " + std::to_string(g));
        EXPECT_EQ(series.gpu.total, kTotal);
        EXPECT_THAT(series.gpu.ranks, ElementsAre(Rank{2 * g}, Rank{2 * g + 1}));
        expectTruth(series, peaks[static_cast<std::size_t>(g)], g);
        // two layers of 16 x 16 and their biases: the weights are there before the first step
        EXPECT_GE(series.value.front().active, 2 * (16 * 16 + 16) * 4);
    }
    EXPECT_GE(FakeGpus::get().driverCalls(), 4) << "at the beginning and at the end";
    EXPECT_THAT(outcome.trace.notes(), IsEmpty());
}

TEST(GpuMemoryOfARun, ComesOnceMoreWithTheNextRun)
{
    for (int run = 0; run < 2; ++run) {
        const Outcome outcome = runOn({.count = 1, .memory = kTotal, .besides = kBesides}, small(2));
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        ASSERT_THAT(outcome.trace.gpus(), SizeIs(1));
        expectTruth(outcome.trace.gpus().front(), traces::gpuPeaks(outcome.trace).front(), 0);
    }
}

TEST(GpuMemoryOfARun, IsOfThoseOnWhichRanksCompute)
{
    Plan plan = small(3);
    plan.run.gpus = {2, kOnCpu, 2};
    const Outcome outcome = runOn({.count = 4, .memory = kTotal}, plan);
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    ASSERT_THAT(outcome.trace.gpus(), SizeIs(1));
    EXPECT_EQ(outcome.trace.gpus().front().gpu.number, 2);
    EXPECT_THAT(outcome.trace.gpus().front().gpu.ranks, ElementsAre(Rank{0}, Rank{2}));
}

TEST(GpuMemoryOfARun, IsNoneOnTheCpuAndBesideVirtualTimes)
{
    Plan plan = small(2);
    EXPECT_THAT(runPlan(plan).trace.gpus(), IsEmpty());
    plan.run.mode = RunMode::Emulated;
    const Outcome emulated = runOn({.count = 1}, plan);
    ASSERT_TRUE(emulated.result) << saidBy(emulated);
    EXPECT_THAT(emulated.trace.gpus(), IsEmpty());
}

TEST(GpuMemoryOfARun, IsGatheredFromProcesses)
{
    Plan plan = small(2);
    plan.run.mode = RunMode::Processes;
    plan.run.device = DeviceKind::Cuda;
    FakeGpus::get().reset({.count = 2, .memory = kTotal, .besides = kBesides});
    TeamOptions options;
    options.devices = &FakeGpus::get().source();
    const TeamOutcome team = runTeam(plan, options);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << saidBy(first);
    const std::vector<GpuSeries>& gpus = first.trace.gpus();
    const std::vector<GpuPeak> peaks = traces::gpuPeaks(first.trace);
    ASSERT_THAT(gpus, SizeIs(2));
    for (int g = 0; g < 2; ++g) {
        EXPECT_THAT(gpus[static_cast<std::size_t>(g)].gpu.ranks, ElementsAre(Rank{g}));
        expectTruth(gpus[static_cast<std::size_t>(g)], peaks[static_cast<std::size_t>(g)], g);
    }
}

// A run whose GPU fails is told as before, with what was known until then.
TEST(GpuMemoryOfARun, EndsWithAGpuThatFails)
{
    const Outcome sound = runOn({.count = 1, .memory = kTotal}, small(2));
    ASSERT_TRUE(sound.result) << saidBy(sound);
    const int operations = FakeGpus::get().operations();
    const Outcome outcome = runOn({.count = 1, .memory = kTotal, .failsFrom = operations * 2 / 3}, small(2));
    EXPECT_EQ(outcome.last, SessionState::Failed);
    EXPECT_THAT(saidBy(outcome), HasSubstr("illegal memory access"));
    ASSERT_THAT(outcome.trace.gpus(), SizeIs(1));
    EXPECT_GT(outcome.trace.gpus().front().value.front().active, 0);
}

} // namespace
} // namespace stagecraft::runtime
