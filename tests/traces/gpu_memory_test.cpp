// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/sample_trace.h"
#include "traces/analysis/gpu_memory.h"
#include "traces/format/trace_records.h"

#include <gmock/gmock.h>

namespace stagecraft::traces {
namespace {

using testing::ElementsAre;

TEST(GpuMemory, IsMadeUpOfPartsThatAddUpToWhatIsUsed)
{
    const GpuMemory memory{.active = 10, .reserved = 16, .used = 20};
    EXPECT_EQ(memory.active + memory.unused() + memory.other(), memory.used);
    EXPECT_EQ((GpuMemory{.active = 0, .reserved = 8, .used = 6}.other()), 0) << "read before the reserve grew";
}

TEST(GpuMemory, HoldsFromEachPointToTheNext)
{
    const GpuSeries series{.gpu = {}, .time = {10, 20}, .value = {{.used = 1}, {.used = 2}}};
    EXPECT_EQ(series.at(9), GpuMemory{});
    EXPECT_EQ(series.at(10).used, 1);
    EXPECT_EQ(series.at(19).used, 1);
    EXPECT_EQ(series.at(500).used, 2);
}

TEST(GpuPeaks, AreOfEachPartByItselfAndTellWhenMostWasUsed)
{
    Trace trace;
    trace.addGpu({.number = 0}); // tells nothing
    const GpuId gpu = trace.addGpu({.number = 1});
    trace.addGpuMemory(gpu, 100, {.active = 5, .reserved = 10, .used = 40});
    trace.addGpuMemory(gpu, 200, {.active = 9, .reserved = 20, .used = 45});
    trace.addGpuMemory(gpu, 300, {.active = 2, .reserved = 30, .used = 45});
    EXPECT_THAT(gpuPeaks(trace), ElementsAre(GpuPeak{.gpu = gpu, .active = 9, .reserved = 30, .other = 30, .used = 45, .at = 200}));
    GpuPeaks live;
    forEachRecord(trace, [&](const Record& record) { live.take(record); });
    EXPECT_EQ(live.all(), gpuPeaks(trace));
    live.take(InfoRecord{});
    EXPECT_TRUE(live.all().empty()) << "the next run's";
}

TEST(GpuNames, AreNumbersAndSayMoreOnlyWhereThatIsNotEnough)
{
    Trace trace;
    trace.addGpu({.host = "a", .number = 0, .bus = "01"});
    trace.addGpu({.host = "a", .number = 1, .bus = "02"});
    EXPECT_THAT(gpuNames(trace), ElementsAre("GPU 0", "GPU 1"));
    trace.addGpu({.host = "b", .number = 0, .bus = "01"});
    trace.addGpu({.host = "b", .number = 0, .bus = "02"}); // hidden from each other: both are the first of their process
    EXPECT_THAT(gpuNames(trace), ElementsAre("GPU 0 of a", "GPU 1", "GPU 0 of b (01)", "GPU 0 of b (02)"));
}

TEST(GpuOfRank, IsTheOneThatNamesIt)
{
    Trace trace;
    trace.addGpu({.ranks = {Rank{0}, Rank{1}}});
    const GpuId second = trace.addGpu({.ranks = {Rank{3}}});
    EXPECT_EQ(gpuOfRank(trace, Rank{1}), GpuId{0});
    EXPECT_EQ(gpuOfRank(trace, Rank{3}), second);
    EXPECT_EQ(gpuOfRank(trace, Rank{2}), std::nullopt) << "on the CPU";
}

} // namespace
} // namespace stagecraft::traces
