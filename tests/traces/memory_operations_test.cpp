// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/kernel_groups.h"
#include "traces/analysis/memory_operations.h"

#include <gmock/gmock.h>

namespace stagecraft::traces {
namespace {

using testing::SizeIs;

TEST(MemoryOperation, IsReadFromItsNameToTheByte)
{
    const Action action = parseAction("u3B12").value();
    std::size_t texts = 0;
    for (const bool allocates : {true, false})
        for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{1023}, Bytes{8'519'680}, Bytes{20} << 20, Bytes{3} << 30, (Bytes{1} << 40) + 1})
            for (const MemoryPlace place : {MemoryPlace::Device, MemoryPlace::Pinned, MemoryPlace::Pageable, MemoryPlace::Managed, MemoryPlace::Array})
                for (const bool async : {false, true})
                    for (const std::optional<Action>& mark : {std::optional<Action>(), std::optional(action)}) {
                        const MemoryOperation operation{.allocates = allocates, .bytes = bytes, .place = place, .async = async, .action = mark};
                        EXPECT_EQ(memoryOperationOf(memoryOperationText(operation)), operation) << memoryOperationText(operation);
                        ++texts;
                    }
    EXPECT_EQ(texts, 280U);
    EXPECT_EQ(memoryOperationText({.bytes = Bytes{20} << 20, .action = parseAction("0F3").value()}), "allocate 20 MiB for 0F3");
    EXPECT_EQ(memoryOperationText({.allocates = false, .bytes = 8'519'680}), "release 8320 KiB");
}

TEST(MemoryOperation, IsNothingElse)
{
    for (const char* text : {"", "allocate", "allocate MiB", "allocate 2", "allocate 2 TiB", "allocate -2 MiB", "allocate 99999999999999 GiB",
                             "allocate 2 MiB for", "allocate 2 MiB for nothing", "allocate 2 MiB more", "memset", "cudaMalloc"})
        EXPECT_EQ(memoryOperationOf(text), std::nullopt) << text;
}

struct Sample {
    Trace trace;
    SliceRef forward;
    SliceRef next;

    Sample()
    {
        const LaneId blocks = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 1"});
        forward = trace.append(blocks, {.begin = 100, .end = 200, .action = parseAction("1F0").value(), .step = Step{0}});
        next = trace.append(blocks, {.begin = 200, .end = 300, .action = parseAction("1F0").value(), .step = Step{1}});
        const LaneId calls = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Stream, .depth = 0, .name = memoryOperationsLaneName(0)});
        put(calls, 10, 20, "allocate 4 MiB", Step{0});
        put(calls, 50, 60, "allocate 2 MiB for 1F0", Step{0}); // the host is ahead
        put(calls, 70, 75, "allocate 1 MiB of pinned memory of the host for 1F0", Step{0});
        put(calls, 80, 90, "release 1 MiB for 1F0", Step{0});
        put(calls, 120, 140, "allocate 8 MiB for 1F0", Step{1});
        put(calls, 150, 151, "release 4 MiB for 1B0", Step{1});
    }
    void put(LaneId lane, TimeNs begin, TimeNs end, std::string_view text, Step step)
    {
        trace.append(lane, {.begin = begin, .end = end, .action = {}, .step = step, .text = trace.intern(text)});
    }
};

TEST(MemoryOperations, OfABlockAreThoseThatCarryItsMarkWhenever)
{
    const Sample sample;
    constexpr Bytes kMiB = 1 << 20;
    EXPECT_EQ(memoryOperationsOf(sample.trace, sample.forward),
              (MemoryOperations{.allocations = 2, .releases = 1, .allocated = 2 * kMiB, .released = kMiB, .inCalls = 25}));
    EXPECT_EQ(memoryOperationsOf(sample.trace, sample.next), (MemoryOperations{.allocations = 1, .allocated = 8 * kMiB, .inCalls = 20}));
}

TEST(MemoryOperations, OfARankAreSplitByKindOfAction)
{
    const Sample sample;
    const std::vector<RankMemoryOperations> all = memoryOperations(sample.trace);
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(all.front().rank, Rank{1});
    EXPECT_EQ(all.front().all.allocations, 4);
    EXPECT_EQ(all.front().all.releases, 2);
    EXPECT_EQ(all.front().all.allocated, Bytes{14} << 20);
    ASSERT_THAT(all.front().byKind, SizeIs(3));
    EXPECT_EQ(all.front().byKind.at(ActionKind::None).allocated, Bytes{4} << 20);
    EXPECT_EQ(all.front().byKind.at(ActionKind::Forward).allocations, 3);
    EXPECT_EQ(all.front().byKind.at(ActionKind::Backward).released, Bytes{4} << 20);
}

// They are no kernels, whatever lies at the same time.
TEST(MemoryOperations, AreNoKernels)
{
    const Sample sample;
    EXPECT_TRUE(kernelsOf(sample.trace, sample.forward).empty());
}

} // namespace
} // namespace stagecraft::traces
