// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/kernel_groups.h"

#include <gmock/gmock.h>

#include <string>

namespace stagecraft::traces {
namespace {

// Two ranks, of which rank 0 has two streams:
//
//   rank 0            F0 0..100       B0 100..260      (nothing)
//   GPU 0 stream 7    g 0-40 g 40-50 r 60-80 | g 100-130 ... t 255-280 | g 300-310
//   GPU 0 stream 8    c 10-25                | c 250-255
//   host waits        w 0-90
//   rank 1            F0 0..100, g 5-95 on its stream
class KernelGroups : public testing::Test {
protected:
    KernelGroups()
    {
        blocks = lane(0, LaneKind::Compute, "rank 0");
        one = lane(0, LaneKind::Stream, "GPU 0 stream 7");
        two = lane(0, LaneKind::Stream, "GPU 0 stream 8");
        waits = lane(0, LaneKind::Stream, "host waits");
        other = lane(1, LaneKind::Compute, "rank 1");
        otherStream = lane(1, LaneKind::Stream, "GPU 1 stream 7");
        forwardBlock = trace.append(blocks, {.begin = 0, .end = 100, .action = forward(Stage{0}, MicroBatch{0})});
        backwardBlock = trace.append(blocks, {.begin = 100, .end = 260, .action = backward(Stage{0}, MicroBatch{0})});
        trace.append(other, {.begin = 0, .end = 100, .action = forward(Stage{1}, MicroBatch{0})});
        longGemm = kernel(one, "gemm", 0, 40);
        kernel(one, "gemm", 40, 50);
        kernel(one, "relu", 60, 80);
        backwardGemm = kernel(one, "gemm", 100, 130);
        tail = kernel(one, "tail", 255, 280);
        late = kernel(one, "gemm", 300, 310);
        copy = kernel(two, "copy", 10, 25);
        kernel(two, "copy", 250, 255);
        wait = kernel(waits, "wait", 0, 90);
        kernel(otherStream, "gemm", 5, 95);
    }
    LaneId lane(int rank, LaneKind kind, const char* name) { return trace.addLane({.rank = Rank{rank}, .kind = kind, .depth = 0, .name = name}); }
    SliceRef kernel(LaneId on, const char* name, TimeNs begin, TimeNs end) // a text of its own each, as a stream of records has it
    {
        return trace.append(on, {.begin = begin, .end = end, .action = {}, .text = trace.addText(name)});
    }
    std::vector<std::string> told(SliceRef block)
    {
        std::vector<std::string> lines;
        for (const KernelGroup& group : kernelsOf(trace, block))
            lines.push_back(trace.text(group.name) + " " + std::to_string(group.count) + " " + std::to_string(group.total));
        return lines;
    }

    Trace trace;
    LaneId blocks{}, one{}, two{}, waits{}, other{}, otherStream{};
    SliceRef forwardBlock{}, backwardBlock{}, longGemm{}, backwardGemm{}, tail{}, late{}, copy{}, wait{};
};

TEST_F(KernelGroups, CountWhatBeginsInTheBlockOnTheStreamsOfItsRank)
{
    EXPECT_THAT(told(forwardBlock), testing::ElementsAre("gemm 2 50", "relu 1 20", "copy 1 15"));
    EXPECT_THAT(told(backwardBlock), testing::ElementsAre("gemm 1 30", "tail 1 25", "copy 1 5"));
}

// The two of a pair run at the same time: what belongs to the one on the second lane lies on lanes of its own.
TEST_F(KernelGroups, OfAPairAreThoseOfTheirOwnLane)
{
    const LaneId second = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 1, .name = "rank 0 (2)"});
    const SliceRef paired = trace.append(second, {.begin = 100, .end = 200, .action = forward(Stage{0}, MicroBatch{1})});
    const SliceRef beside = kernel(lane(0, LaneKind::Stream, "GPU 0 stream 8, beside"), "gelu", 110, 190);
    EXPECT_THAT(told(paired), testing::ElementsAre("gelu 1 80"));
    EXPECT_THAT(told(backwardBlock), testing::ElementsAre("gemm 1 30", "tail 1 25", "copy 1 5"));
    EXPECT_EQ(blockOf(trace, beside), paired);
    EXPECT_EQ(blockOf(trace, backwardGemm), backwardBlock);
}

TEST(KernelGroup, OfThePairsOfACpuAreTheOperatorsOfTheirThread)
{
    Trace trace;
    const auto lane = [&](LaneKind kind, int depth, const std::string& name) { return trace.addLane({.rank = Rank{0}, .kind = kind, .depth = depth, .name = name}); };
    const auto call = [&](LaneId on, const char* name, TimeNs begin, TimeNs end) {
        return trace.append(on, {.begin = begin, .end = end, .action = {}, .text = trace.addText(name)});
    };
    const SliceRef back = trace.append(lane(LaneKind::Compute, 0, "rank 0"), {.begin = 0, .end = 100, .action = backward(Stage{0}, MicroBatch{0})});
    const SliceRef ahead = trace.append(lane(LaneKind::Compute, 1, "rank 0 (2)"), {.begin = 0, .end = 90, .action = forward(Stage{0}, MicroBatch{1})});
    const SliceRef first = call(lane(LaneKind::Stream, 0, operatorsLaneName("rank 0", 0)), "aten::mm", 10, 20);
    const SliceRef second = call(lane(LaneKind::Stream, 1, operatorsLaneName("rank 0", 1)), "aten::gelu", 10, 30);
    ASSERT_EQ(kernelsOf(trace, back).size(), 1U);
    EXPECT_EQ(kernelsOf(trace, back).front().longest, first);
    EXPECT_EQ(kernelsOf(trace, ahead).front().longest, second);
    EXPECT_EQ(blockOf(trace, second), ahead);
}

TEST_F(KernelGroups, TellTheShareAndTheLongest)
{
    const std::vector<KernelGroup> groups = kernelsOf(trace, forwardBlock);
    ASSERT_EQ(groups.size(), 3U);
    EXPECT_EQ(groups[0].longest, longGemm);
    EXPECT_EQ(groups[2].longest, copy);
    EXPECT_DOUBLE_EQ(groups[0].share, 50.0 / 85);
    EXPECT_DOUBLE_EQ(groups[0].share + groups[1].share + groups[2].share, 1);
}

TEST_F(KernelGroups, AreNoneWhereTheTraceHasNoKernels)
{
    Trace plain;
    const LaneId lane = plain.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    const SliceRef block = plain.append(lane, {.begin = 0, .end = 10, .action = forward(Stage{0}, MicroBatch{0})});
    EXPECT_TRUE(kernelsOf(plain, block).empty());
}

TEST_F(KernelGroups, OfAKernelAreThoseOfItsBlock)
{
    EXPECT_EQ(blockOf(trace, forwardBlock), forwardBlock);
    EXPECT_EQ(blockOf(trace, longGemm), forwardBlock);
    EXPECT_EQ(blockOf(trace, backwardGemm), backwardBlock) << "the end of a block is not in it";
    EXPECT_EQ(blockOf(trace, tail), backwardBlock);
    EXPECT_EQ(blockOf(trace, late), std::nullopt);
    EXPECT_EQ(blockOf(trace, wait), std::nullopt) << "no kernel";
}

TEST(KernelGroupsOfOperators, AreThoseThatTheThreadCalled)
{
    Trace trace;
    const LaneId blocks = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    const LaneId operators = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 0, .name = operatorsLaneName("rank 0", 0)});
    const SliceRef block = trace.append(blocks, {.begin = 0, .end = 100, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(operators, {.begin = 1, .end = 30, .action = {}, .text = trace.intern("aten::mm")});
    const SliceRef last = trace.append(operators, {.begin = 30, .end = 90, .action = {}, .text = trace.intern("aten::mm")});
    const std::vector<KernelGroup> groups = kernelsOf(trace, block);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups.front().count, 2U);
    EXPECT_EQ(groups.front().longest, last);
    EXPECT_EQ(blockOf(trace, last), block);
    EXPECT_EQ(operatorsLaneName("rank 1", 1), "rank 1 operators (2)");
    EXPECT_FALSE(holdsKernels(trace.lane(operators).info()));
}

TEST(KernelLanes, AreThoseOfStreamsWithAnAction)
{
    const auto holds = [](LaneKind kind, const char* name) { return holdsKernels({.rank = Rank{0}, .kind = kind, .depth = 0, .name = name}); };
    EXPECT_TRUE(holds(LaneKind::Stream, "GPU 0 stream 7"));
    EXPECT_TRUE(holds(LaneKind::Stream, "GPU 0 stream 7 (2)"));
    EXPECT_TRUE(holds(LaneKind::Stream, "Stream 7"));
    EXPECT_FALSE(holds(LaneKind::Stream, "GPU 0 stream 7, of no action"));
    for (const char* ofHost : {"host waits", "CUDA calls of thread 12", "overhead of recording", "loader"}) EXPECT_FALSE(holds(LaneKind::Stream, ofHost));
    EXPECT_FALSE(holds(LaneKind::Transfer, "stream of sends"));
}

} // namespace
} // namespace stagecraft::traces
