// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/device_time.h"
#include "traces/analysis/interval_set.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace stagecraft::traces {
namespace {

using testing::ElementsAre;

// Two ranks on one GPU:
//
//   rank 0                 F0 0..100                                  B0 120..200
//   GPU 0 stream 7         k 5-40   k 60-80                           k 120-150   memset 150-160
//   GPU 0 stream 7, gaps   host 40-55, launch 55-60, device 80-120                event 160-230
//   GPU 0 stream 8         copy 30-90                                 copy 110-115
//   GPU 0 stream 8, gaps   host 90-110
//   rank 1                 F0 0..100
//   GPU 0 stream 9         k 0-35
class DeviceTimes : public testing::Test {
protected:
    DeviceTimes()
    {
        const LaneId zero = lane(0, LaneKind::Compute, "rank 0");
        forwardBlock = trace.append(zero, {.begin = 0, .end = 100, .action = forward(Stage{0}, MicroBatch{0})});
        backwardBlock = trace.append(zero, {.begin = 120, .end = 200, .action = backward(Stage{0}, MicroBatch{0})});
        const LaneId one = lane(1, LaneKind::Compute, "rank 1");
        otherBlock = trace.append(one, {.begin = 0, .end = 100, .action = forward(Stage{1}, MicroBatch{0})});
        put(lane(0, LaneKind::Stream, "GPU 0 stream 8, gaps"), {{"host had not launched", 90, 110}}); // the lesser stream comes first
        put(lane(0, LaneKind::Stream, "GPU 0 stream 8"), {{"host to device", 30, 90}, {"copy GPU 0 to GPU 1", 110, 115}});
        put(lane(0, LaneKind::Stream, "GPU 0 stream 7"), {{"gemm", 5, 40}, {"gemm", 60, 80}, {"gemm", 120, 150}, {"memset", 150, 160}});
        put(lane(0, LaneKind::Stream, "GPU 0 stream 7, gaps"), {{"host had not launched", 40, 55},
                                                                  {"launch on its way", 55, 60},
                                                                  {"device, though work was there", 80, 120},
                                                                  {"waits for an event", 160, 230}});
        put(lane(0, LaneKind::Stream, "host waits"), {{"wait for stream", 0, 200}});
        put(lane(1, LaneKind::Stream, "GPU 0 stream 9"), {{"gemm", 0, 35}});
    }
    struct Each {
        const char* name;
        TimeNs begin;
        TimeNs end;
    };
    LaneId lane(int rank, LaneKind kind, const char* name) { return trace.addLane({.rank = Rank{rank}, .kind = kind, .depth = 0, .name = name}); }
    void put(LaneId on, std::initializer_list<Each> all)
    {
        for (const Each& each : all) trace.append(on, {.begin = each.begin, .end = each.end, .action = {}, .text = trace.addText(each.name)});
    }

    Trace trace;
    SliceRef forwardBlock{}, backwardBlock{}, otherBlock{};
};

TEST_F(DeviceTimes, SplitABlockIntoPartsThatAddUp)
{
    const DeviceTime time = deviceTimeOf(trace, forwardBlock).value();
    EXPECT_EQ(time.span, 100);
    EXPECT_EQ(time.kernels, 35 + 20);
    EXPECT_EQ(time.copies, 20 + 10) << "40 to 60 and 80 to 90";
    EXPECT_THAT(time.gaps, ElementsAre(0, 0, 0, 10)) << "the copy covers the others; the stream with the kernels says why from 90 on";
    EXPECT_EQ(time.notKnown, 5) << "before the first kernel";
    EXPECT_EQ(time.copying, 60);
    EXPECT_EQ(time.hidden, 10 + 20) ;
    EXPECT_EQ(deviceTimeOf(trace, backwardBlock).value(),
              (DeviceTime{.span = 80, .kernels = 40, .copies = 0, .gaps = {0, 0, 40, 0}, .notKnown = 0, .copying = 0, .hidden = 0}));
}

TEST_F(DeviceTimes, OfARankAreThoseOfItsBlocksAndOfItsCopiesEverywhere)
{
    const std::vector<RankDeviceTime> all = deviceTimes(trace);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].rank, Rank{0});
    EXPECT_EQ(all[0].time, (DeviceTime{.span = 180, .kernels = 95, .copies = 30, .gaps = {0, 0, 40, 10}, .notKnown = 5, .copying = 65, .hidden = 30}));
    EXPECT_EQ(all[1].time, (DeviceTime{.span = 100, .kernels = 35, .copies = 0, .gaps = {}, .notKnown = 65, .copying = 0, .hidden = 0}));
}

TEST_F(DeviceTimes, HideACopyBehindTheKernelsOfAnotherRankOnTheSameGpuAlone)
{
    for (const char* gpu : {"GPU 0 stream 10", "GPU 1 stream 10"}) {
        Trace more = trace;
        const LaneId third = more.addLane({.rank = Rank{2}, .kind = LaneKind::Stream, .depth = 0, .name = gpu});
        more.append(third, {.begin = 85, .end = 200, .action = {}, .text = more.addText("gemm")});
        EXPECT_EQ(deviceTimes(more).front().time.hidden, gpu == std::string("GPU 0 stream 10") ? 30 + 5 + 5 : 30);
    }
}

// NCCL's kernels are at work beside: what they do is told apart, also of traces in which they lie among the others.
TEST_F(DeviceTimes, CountTheKernelsOfNcclApart)
{
    for (const char* name : {"GPU 0 stream 10, NCCL", "stream 10"}) {
        Trace more = trace;
        const LaneId nccl = more.addLane({.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 0, .name = name});
        more.append(nccl, {.begin = 20, .end = 95, .action = {}, .text = more.addText("ncclDevKernel_SendRecv(args)")});
        const DeviceTime time = deviceTimeOf(more, forwardBlock).value();
        EXPECT_EQ(time.kernels, 35 + 20);
        EXPECT_EQ(time.copies, 20 + 10);
        EXPECT_EQ(time.exchanges, 95 - 90);
        EXPECT_EQ(time.gap(StreamGapCause::Device), 5);
        EXPECT_EQ(time.hidden, 10 + 20) << "by computing";
        EXPECT_EQ(time.nccl, (NcclTime{.waiting = 0, .moving = 0, .notKnown = 75}));
        EXPECT_EQ(deviceTimes(more).front().time.nccl.all(), 75);
    }
}

TEST(DeviceTime, IsNoneWithoutKernels)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    const SliceRef block = trace.append(lane, {.begin = 0, .end = 10, .action = forward(Stage{0}, MicroBatch{0})});
    EXPECT_EQ(deviceTimeOf(trace, block), std::nullopt);
    EXPECT_TRUE(deviceTimes(trace).empty());
}

TEST(StreamLanes, AreToldApartByName)
{
    const auto named = [](const char* name) { return LaneInfo{.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 0, .name = name}; };
    EXPECT_TRUE(holdsStreamWork(named("GPU 3 stream 7, of no action")));
    EXPECT_FALSE(holdsStreamWork(named("GPU 3 stream 7, gaps")));
    EXPECT_FALSE(holdsKernels(named("GPU 3 stream 7, gaps (2)")));
    EXPECT_TRUE(holdsGaps(named("GPU 3 stream 7, gaps (2)")));
    EXPECT_EQ(streamName(named("GPU 3 stream 7, gaps (2)")), "GPU 3 stream 7");
    EXPECT_EQ(gapsLaneName("GPU 3 stream 7"), "GPU 3 stream 7, gaps");
    EXPECT_EQ(gpuOf(named("GPU 13 stream 7")), 13);
    EXPECT_EQ(gpuOf(named("stream 7")), std::nullopt);
    for (const StreamGapCause cause : kStreamGapCauses) EXPECT_EQ(streamGapCauseOf(streamGapText(cause)), cause);
    EXPECT_EQ(streamGapCauseOf("gemm"), std::nullopt);
    EXPECT_TRUE(isCopyName("Memcpy HtoD (Pinned -> Device)"));
    EXPECT_FALSE(isCopyName("memset"));
    EXPECT_FALSE(isCopyName("copy_kernel"));
    EXPECT_TRUE(holdsNccl(named("GPU 3 stream 7, NCCL (2)")));
    EXPECT_TRUE(holdsStreamWork(named("GPU 3 stream 7, NCCL")));
    EXPECT_FALSE(holdsKernels(named("GPU 3 stream 7, NCCL")));
    EXPECT_EQ(streamName(named("GPU 3 stream 7, NCCL (2)")), "GPU 3 stream 7");
    EXPECT_TRUE(holdsExchanges(named("replica 1 · rank 0 exchanges")));
    EXPECT_TRUE(isExchangeName("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
    EXPECT_TRUE(isSumName("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
    EXPECT_FALSE(isSumName("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
    EXPECT_FALSE(isExchangeName("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
    EXPECT_TRUE(isNcclName("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)")) << "before 2.19";
}

TEST(IntervalSet, IsWhatASetOfMomentsIs)
{
    std::mt19937 random(5);
    const auto any = [&] {
        std::vector<Interval> out;
        for (auto i = random() % 12; i > 0; --i) {
            const auto begin = static_cast<TimeNs>(random() % 100);
            out.push_back({begin, begin + static_cast<TimeNs>(random() % 15)});
        }
        return out;
    };
    const auto moments = [](const std::vector<Interval>& intervals) {
        std::set<TimeNs> out;
        for (const Interval& each : intervals)
            for (TimeNs t = each.begin; t < each.end; ++t) out.insert(t);
        return out;
    };
    for (int round = 0; round < 500; ++round) {
        const std::vector<Interval> rawA = any();
        const std::vector<Interval> rawB = any();
        const IntervalSet a = unionOf(rawA);
        const IntervalSet b = unionOf(rawB);
        std::set<TimeNs> both;
        std::set<TimeNs> without;
        for (const TimeNs t : moments(rawA)) (moments(rawB).contains(t) ? both : without).insert(t);
        EXPECT_EQ(moments(a), moments(rawA));
        EXPECT_EQ(moments(intersectionOf(a, b)), both);
        EXPECT_EQ(moments(differenceOf(a, b)), without);
        EXPECT_EQ(lengthOf(a), static_cast<TimeNs>(moments(rawA).size()));
        for (const IntervalSet& set : {a, intersectionOf(a, b), differenceOf(a, b)})
            for (std::size_t i = 0; i < set.size(); ++i) EXPECT_TRUE(set[i].begin < set[i].end && (i == 0 || set[i - 1].end <= set[i].begin));
    }
}

} // namespace
} // namespace stagecraft::traces
