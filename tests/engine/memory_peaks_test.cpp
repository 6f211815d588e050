// SPDX-License-Identifier: Apache-2.0
//
// What makes up the peaks of simulated steps.
#include "random_case.h"

#include "traces/analysis/memory_peaks.h"

#include <numeric>
#include <random>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

engine::CostTable slotsWithBytes(int stages)
{
    engine::CostTable costs = slotCosts(stages, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) {
        stage.activationBytes = 1000;
        stage.wgradBytes = 300;
        stage.weightBytes = 50'000;
        stage.gradientBytes = 20'000;
    }
    return costs;
}

// 1F1B: min(p-r, m) micro-batches on rank r (DAPPLE, arXiv 2007.01045). Gradients come with the first backward, which begins
// while all of them are still there.
TEST(PeakOfASimulation, IsWhere1F1BsFirstBackwardBegins)
{
    const auto peaks = traces::memoryPeaks(engine::simulate(made("1f1b", 4, 8), slotsWithBytes(4)).value(), traces::Step{0});
    ASSERT_EQ(peaks.size(), 4U);
    for (int r = 0; r < 4; ++r) {
        const traces::MemoryPeak& peak = peaks[static_cast<std::size_t>(r)];
        EXPECT_EQ(peak.activations.size(), static_cast<std::size_t>(4 - r)) << "rank " << r;
        EXPECT_EQ(peak.bytes, (4 - r) * 1000 + 70'000) << "rank " << r;
    }
    EXPECT_EQ(peaks[0].activations.front().microbatch, traces::MicroBatch{0});
    EXPECT_EQ(peaks[0].activations.back().microbatch, traces::MicroBatch{3});
    EXPECT_EQ(peaks[0].at, (1 + 3 + 3 * 2) * kSlot) << "after the way of micro-batch 0 there (4 F) and back (3 B)";
}

// ZB-H1: (p-i+1) M_B + (i-1) M_W on worker i = r+1 (arXiv 2401.10241, sec. 2).
TEST(PeakOfASimulation, HoldsZbH1sWeightGradients)
{
    const auto peaks = traces::memoryPeaks(engine::simulate(made("zb-h1", 4, 12), slotsWithBytes(4)).value(), traces::Step{0});
    for (int r = 0; r < 4; ++r) {
        const traces::MemoryPeak& peak = peaks[static_cast<std::size_t>(r)];
        const auto forWeights = std::count_if(peak.activations.begin(), peak.activations.end(),
                                              [](const traces::HeldActivations& held) { return held.forWeightGrad; });
        EXPECT_EQ(forWeights, r) << "rank " << r;
        EXPECT_EQ(peak.byClass[static_cast<std::size_t>(traces::MemoryClass::Activations)], (4 - r) * 1000 + r * 300);
    }
}

TEST(PeakOfASimulation, IsExplainedToTheByteForEverySchedule)
{
    std::mt19937 random(11);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 200; ++round) {
        const engine::Schedule schedule = drawSchedule(random, static_cast<std::size_t>(round), 6, 14);
        SCOPED_TRACE(schedule.name + " in round " + std::to_string(round));
        engine::CostTable costs = slotsWithBytes(schedule.stages());
        costs.transfer = among(0, 1) * 1234;
        for (engine::StageCosts& stage : costs.stages) {
            stage.activationBytes = among(1, 500);
            stage.wgradBytes = among(0, static_cast<int>(stage.activationBytes));
        }
        const traces::Trace trace = engine::simulate(schedule, costs).value();
        for (const traces::MemoryPeak& peak : traces::memoryPeaks(trace, traces::Step{0})) {
            EXPECT_EQ(std::accumulate(peak.byClass.begin(), peak.byClass.end(), traces::Bytes{0}), peak.bytes);
            traces::Bytes held = 0;
            for (const traces::HeldActivations& one : peak.activations) held += one.bytes;
            EXPECT_EQ(held, peak.byClass[static_cast<std::size_t>(traces::MemoryClass::Activations)]);
            EXPECT_EQ(peak.unexplained, 0);
        }
    }
}

// The simulation in the order of time writes all changes of a moment as one: the rank that gives back one micro-batch and takes
// the next holds as many as before.
TEST(PeakOfASimulation, IsExplainedWhereChangesFallTogether)
{
    for (const char* name : {"1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe"}) {
        const engine::ScheduleFamily& family = *engine::findFamily(name);
        const engine::Schedule schedule = made(name, 4, 12, family.minChunks);
        engine::CostTable costs = slotsWithBytes(schedule.stages());
        for (engine::StageCosts& stage : costs.stages) stage.outputBytes = 10; // buffers are not for the plain simulation
        for (const traces::MemoryPeak& peak : traces::memoryPeaks(engine::simulate(schedule, costs).value(), traces::Step{0})) {
            EXPECT_EQ(peak.unexplained, 0) << name << ", rank " << peak.rank.value;
            for (const traces::HeldActivations& held : peak.activations) EXPECT_EQ(held.bytes, held.forWeightGrad ? 300 : 1000) << name;
        }
    }
}

TEST(PeakOfASimulation, LeavesOutWhatIsOnTheHost)
{
    // the first micro-batch goes to the host while the others are made, and comes back for its backward
    const engine::Schedule schedule = engine::parseSchedule("0F0,0OFFLOAD0,0F1,0F2,0B2,0RELOAD0,0B1,0B0\n").value();
    engine::CostTable costs = slotsWithBytes(1);
    costs.stages[0].weightBytes = costs.stages[0].gradientBytes = 0;
    costs.machine.host = {.latency = kSlot / 2, .bytesPerSecond = 0};
    const traces::MemoryPeak peak = traces::memoryPeaks(engine::simulate(schedule, costs).value(), traces::Step{0}).at(0);
    EXPECT_EQ(peak.bytes, 2000) << "never three at a time";
    EXPECT_EQ(peak.unexplained, 0);
    ASSERT_EQ(peak.activations.size(), 2U);
}

TEST(PeakOfASimulation, TellsWhenARankRunsOut)
{
    engine::CostTable costs = slotsWithBytes(4);
    costs.machine.memory = 50'000 + 3'500;
    const auto peaks = traces::memoryPeaks(engine::simulate(made("1f1b", 4, 8), costs).value(), traces::Step{0});
    EXPECT_EQ(peaks[0].runsOut, 3 * kSlot) << "the fourth forward of the first rank";
    EXPECT_EQ(peaks[3].runsOut, 4 * kSlot) << "the gradients of the last rank, once its first backward begins";
}

} // namespace
