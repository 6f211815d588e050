// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/memory_peaks.h"

#include "tests/traces/staircase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;

constexpr Step kStep{0};

// "0F1 100" for each, with a W where it is kept for the weight gradient alone.
std::vector<std::string> held(const MemoryPeak& peak)
{
    std::vector<std::string> all;
    for (const HeldActivations& one : peak.activations)
        all.push_back(toText(makeAction(ActionKind::Forward, one.stage, one.microbatch, one.flow)) + " " + std::to_string(one.bytes) +
                      (one.forWeightGrad ? "W" : ""));
    return all;
}

// One rank that keeps 100 of each F, gives 70 back at I and the rest at W, beside 1000 of weights.
Trace splitBackward()
{
    Trace trace = staircase({"0F0 0F1 0I0 0F2 0W0 0I1 0W1 0I2 0W2"});
    trace.addMemory(Rank{0}, MemoryClass::Weights, 0, 1000);
    const auto activations = [&](TimeNs time, Bytes bytes) { trace.addMemory(Rank{0}, MemoryClass::Activations, time, bytes); };
    activations(0, 0);
    activations(0, 100);
    activations(1000, 200);
    activations(3000, 130); // I0 ends,
    activations(3000, 230); // and F2 begins
    activations(5000, 200);
    activations(6000, 130);
    activations(7000, 100);
    activations(8000, 30);
    activations(9000, 0);
    return trace;
}

TEST(MemoryPeaks, TellWhenWhatAndOfWhichMicroBatch)
{
    const Trace trace = splitBackward();
    const MemoryPeak peak = memoryPeaks(trace, kStep).at(0);
    EXPECT_EQ(peak.at, 3000);
    EXPECT_EQ(peak.bytes, 1230) << "not 1330: what is given back at that moment was never there together";
    EXPECT_EQ(peak.byClass[static_cast<std::size_t>(MemoryClass::Weights)], 1000);
    EXPECT_EQ(peak.byClass[static_cast<std::size_t>(MemoryClass::Activations)], 230);
    EXPECT_THAT(held(peak), ElementsAre("0F0 30W", "0F1 100", "0F2 100"));
    EXPECT_EQ(peak.unexplained, 0);
    ASSERT_TRUE(peak.during);
    EXPECT_EQ(trace.sliceName(*peak.during), "0F2");
    EXPECT_EQ(peak.runsOut, std::nullopt) << "no limit is known";
}

TEST(MemoryPeaks, TellWhereTheLimitIsBroken)
{
    Trace trace = splitBackward();
    trace.info.memoryLimit = 1199;
    const MemoryPeak peak = memoryPeaks(trace, kStep).at(0);
    EXPECT_EQ(peak.runsOut, 1000);
    EXPECT_EQ(trace.sliceName(*peak.runsOutDuring), "0F1");
    EXPECT_EQ(peak.timeBeyond, 5000) << "until I1 gives back at 6000";
    trace.info.memoryLimit = 1230;
    EXPECT_EQ(memoryPeaks(trace, kStep).at(0).runsOut, std::nullopt) << "full is not beyond";
}

TEST(MemoryPeaks, CountARunsOtherBytesAsOne)
{
    // A run's allocator counts at any time: 8 bytes of input lie there before F, the kernel keeps 60 in two portions.
    Trace trace = staircase({"0F0 0F1 0B0 0B1"});
    trace.info.label = TraceLabel::Measured;
    const auto activations = [&](TimeNs time, Bytes bytes) { trace.addMemory(Rank{0}, MemoryClass::Activations, time, bytes); };
    activations(-500, 8);
    activations(100, 38);
    activations(700, 68);
    activations(1100, 128);
    activations(2500, 150); // B0 needs room for itself before it gives back
    activations(2900, 70);
    activations(3900, 8);
    const MemoryPeak peak = memoryPeaks(trace, kStep).at(0);
    EXPECT_EQ(peak.at, 2500);
    EXPECT_THAT(held(peak), ElementsAre("0F0 82", "0F1 60"));
    EXPECT_EQ(peak.unexplained, 8);
}

TEST(MemoryPeaks, KnowWhatIsOnTheHost)
{
    Trace trace = staircase({"0F0 .   0F1 0F2 0B2 0B1 0B0"});
    const LaneId copies = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Copy, .name = "copies"});
    trace.append(copies, {.begin = 1000, .end = 1500, .action = makeAction(ActionKind::Offload, Stage{0}, MicroBatch{0})});
    trace.append(copies, {.begin = 5500, .end = 6000, .action = makeAction(ActionKind::Reload, Stage{0}, MicroBatch{0})});
    const auto activations = [&](TimeNs time, Bytes bytes) { trace.addMemory(Rank{0}, MemoryClass::Activations, time, bytes); };
    activations(0, 10);
    activations(1500, 0); // F0 is away
    activations(2000, 10);
    activations(3000, 20);
    activations(5000, 10);
    activations(5500, 20);
    activations(6000, 10);
    activations(7000, 0);
    activations(2'000'000, 50); // of another step
    const MemoryPeak peak = memoryPeaks(trace, kStep).at(0);
    EXPECT_EQ(peak.at, 3000);
    EXPECT_THAT(held(peak), ElementsAre("0F1 10", "0F2 10"));
}

TEST(MemoryPeaks, AreNothingWithoutSeriesAndNoneWithoutAStep)
{
    const Trace trace = staircase({"0F0 0B0"});
    ASSERT_EQ(memoryPeaks(trace, kStep).size(), 1U);
    EXPECT_EQ(memoryPeaks(trace, kStep)[0].bytes, 0);
    EXPECT_TRUE(memoryPeaks(trace, Step{3}).empty());
}

} // namespace
} // namespace stagecraft::traces
