// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/device_lanes.h"
#include "traces/analysis/kernel_groups.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using traces::Flow;
using traces::Interval;
using traces::MicroBatch;
using traces::Rank;
using traces::Record;
using traces::Stage;
using traces::Step;
using traces::Trace;

constexpr std::uint32_t kRun = 3;

WorkId markOf(int stage, int step = 0, std::uint32_t run = kRun, Flow flow = Flow::Single)
{
    return *packWork({.run = run, .step = Step{step}, .work = traces::makeAction(traces::ActionKind::Forward, Stage{stage}, MicroBatch{0}, flow).work});
}
DevicePlace stream(std::uint32_t number, std::uint32_t device = 0) { return {.device = device, .context = device + 1, .stream = number}; }

JoinedActivity kernel(WorkId work, Interval span, DevicePlace place = stream(7), std::uint32_t name = 1)
{
    return {.activity = KernelActivity{.span = span, .place = place, .name = NameId{name}}, .work = work, .call = std::nullopt};
}
JoinedActivity copy(WorkId work, Interval span, DevicePlace place = stream(7))
{
    return {.activity = CopyActivity{.span = span, .place = place, .direction = CopyDirection::DeviceToHost, .bytes = 64}, .work = work, .call = std::nullopt};
}

// Two stages on two ranks; lanes, and the trace that their records make.
struct Lanes {
    explicit Lanes(const DeviceLaneOptions& options = {}, RankPlacement placement = {.run = kRun, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}})
        : ranks(std::move(placement)), lanes(ranks, numbers, options)
    {
        lanes.addNames({"gemm", "relu"});
    }
    void flush()
    {
        std::vector<Record> records;
        lanes.flush(records);
        for (const Record& each : records) {
            const traces::Expected<void> fits = traces::apply(trace, each);
            ASSERT_TRUE(fits.ok()) << fits.error().message;
        }
    }
    // "rank 0: GPU 0 stream 7: gemm[100,200)@0 relu[...]..."
    [[nodiscard]] std::vector<std::string> rows() const
    {
        std::vector<std::string> out;
        for (std::size_t l = 0; l < trace.laneCount(); ++l) {
            const traces::Lane& lane = trace.lane(traces::LaneId{l});
            std::string row = std::to_string(lane.info().rank.value) + "." + std::to_string(lane.info().depth) + " " + lane.info().name + ":";
            for (std::uint32_t i = 0; i < lane.size(); ++i) {
                row += " " + trace.sliceName({traces::LaneId{l}, i}) + "[" + std::to_string(lane.begin(i)) + "," + std::to_string(lane.end(i)) + ")@" +
                       std::to_string(lane.step(i).value);
            }
            out.push_back(row);
        }
        return out;
    }

    DevicePlaceRanks ranks;
    OwnRecordNumbers numbers;
    DeviceLanes lanes;
    Trace trace;
};

TEST(DeviceLanes, AreTheStreamsOfARank)
{
    Lanes test;
    test.lanes.add(kernel(markOf(1, 4), {300, 400}, stream(8), 2));
    test.lanes.add(kernel(markOf(0, 4), {100, 200}));
    test.lanes.add(copy(markOf(0, 4), {200, 250}));
    test.lanes.add(copy(markOf(0, 4), {100, 150}, stream(9)));
    test.flush();
    test.lanes.add(kernel(markOf(0, 5), {260, 300}));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[100,200)@4 device to host[200,250)@4 gemm[260,300)@5",
                                         "0.1 GPU 0 stream 9: device to host[100,150)@4", "1.0 GPU 0 stream 8: relu[300,400)@4"));
    EXPECT_EQ(test.lanes.unattributed(), 0);
    EXPECT_EQ(test.lanes.late(), 0);
    for (const traces::Lane& lane : test.trace.lanes()) EXPECT_TRUE(traces::holdsKernels(lane.info())) << "analyses find them";
}

// The block of a pair's forward lies on the rank's second lane, and may run while the backward's does.
TEST(DeviceLanes, HoldTheForwardsOfPairsApart)
{
    const WorkId paired = *packWork({.run = kRun, .step = Step{0}, .work = traces::forward(Stage{0}, MicroBatch{1}).work});
    Lanes test({}, {.run = kRun, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}, .beside = {traces::forward(Stage{0}, MicroBatch{1}).work}});
    test.lanes.add(kernel(markOf(0), {0, 50}, stream(8)));
    test.lanes.add(kernel(paired, {100, 200}, stream(8)));
    test.lanes.add(kernel(markOf(0), {120, 220}));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[120,220)@0", "0.1 GPU 0 stream 8: gemm[0,50)@0", "0.2 GPU 0 stream 8, beside: gemm[100,200)@0"));
    EXPECT_TRUE(traces::holdsKernels(test.trace.lanes()[2].info()));
    EXPECT_TRUE(traces::isBeside(test.trace.lanes()[2].info()));
    EXPECT_EQ(traces::streamName(test.trace.lanes()[2].info()), "GPU 0 stream 8");
}

// NCCL launches from threads of its own; which hand-off a kernel is of is for the analysis to tell.
TEST(DeviceLanes, HoldTheKernelsOfNcclApartFromWhatIsOfNoAction)
{
    Lanes test({}, {.run = kRun, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}, .deviceToRank = {{0, Rank{1}}}, .otherwise = Rank{1}});
    test.lanes.addNames({"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"});
    test.lanes.add(kernel(kNoWork, {100, 200}, stream(9), 3));
    test.lanes.add(kernel(kNoWork, {200, 250}, stream(9), 1));
    test.lanes.add(kernel(kNoWork, {300, 400}, stream(9), 3));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("1.0 GPU 0 stream 9, of no action: gemm[200,250)@0",
                                         "1.1 GPU 0 stream 9, NCCL: ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)[100,200)@0 "
                                         "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)[300,400)@0"));
    EXPECT_EQ(test.lanes.unattributed(), 1);
    EXPECT_TRUE(traces::holdsNccl(test.trace.lanes()[1].info()));
    EXPECT_FALSE(traces::holdsKernels(test.trace.lanes()[1].info()));
}

// Calls as CUPTI has them: the second kernel was asked for late, the third in time, the fourth after the stream was told to wait.
TEST(DeviceLanes, TellWhyAStreamStoodStill)
{
    Lanes test;
    const auto called = [](JoinedActivity each, traces::TimeNs at) {
        each.call = Interval{at, at + 5};
        return each;
    };
    test.lanes.add(called(kernel(markOf(0, 4), {100, 200}), 90));
    test.lanes.add(called(kernel(markOf(0, 4), {260, 300}), 250));
    test.flush();
    test.lanes.add(called(kernel(markOf(0, 5), {310, 400}), 255)); // of a later batch
    test.lanes.add({SyncActivity{.span = {320, 321}, .context = 1, .stream = 7, .sync = SyncKind::StreamWait}, kNoWork, std::nullopt});
    test.lanes.add(called(kernel(markOf(0, 5), {450, 500}), 330));
    test.lanes.add(kernel(markOf(0, 5), {600, 700})); // whose launch is not recorded
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[100,200)@4 gemm[260,300)@4 gemm[310,400)@5 gemm[450,500)@5 gemm[600,700)@5",
                                         "0.1 GPU 0 stream 7, gaps: host had not launched[200,250)@4 launch on its way[250,260)@4 "
                                         "device, though work was there[300,310)@5 waits for an event[400,450)@5"));
    EXPECT_FALSE(traces::holdsKernels(test.trace.lanes()[1].info()));
    EXPECT_TRUE(traces::holdsGaps(test.trace.lanes()[1].info()));
}

// What nobody marked fills a gap all the same.
TEST(DeviceLanes, SeeNoGapWhereAStreamDoesWhatNobodyMarked)
{
    Lanes test;
    test.lanes.add(kernel(markOf(0), {100, 200}));
    test.lanes.add(kernel(kNoWork, {200, 300}));
    JoinedActivity last = kernel(markOf(0), {300, 400});
    last.call = Interval{250, 255};
    test.lanes.add(last);
    test.flush();
    for (const traces::Lane& lane : test.trace.lanes()) EXPECT_FALSE(traces::holdsGaps(lane.info())) << lane.info().name;
}

TEST(DeviceLanes, OfRanksThatShareAStreamAreApart)
{
    Lanes test;
    test.lanes.add(kernel(markOf(0), {100, 200}));
    test.lanes.add(kernel(markOf(1), {200, 300}));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[100,200)@0", "1.0 GPU 0 stream 7: gemm[200,300)@0"));
}

TEST(DeviceLanes, OfBothDirectionsFollowTheirPlacement)
{
    Lanes test({}, {.run = kRun, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {Rank{1}, Rank{0}}});
    test.lanes.add(kernel(markOf(0, 0, kRun, Flow::Down), {100, 200}, stream(7)));
    test.lanes.add(kernel(markOf(0, 0, kRun, Flow::Up), {100, 200}, stream(8)));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[100,200)@0", "1.0 GPU 0 stream 8: gemm[100,200)@0"));
}

TEST(DeviceLanes, KeepApartWhatNobodyMarkedAndCountIt)
{
    Lanes test({}, {.run = kRun, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}, .deviceToRank = {{2, Rank{1}}}});
    test.lanes.add(kernel(kNoWork, {10, 20}, stream(8)));          // of a stream that nobody knows yet
    test.lanes.add(kernel(markOf(1), {100, 200}, stream(8)));
    test.lanes.add(kernel(kNoWork, {200, 300}, stream(8)));        // of rank 1 by its stream
    test.lanes.add(kernel(markOf(1, 0, kRun - 1), {300, 400}, stream(8))); // of an earlier run
    test.lanes.add(kernel(kNoWork, {300, 400}, stream(3, 2)));     // of rank 1 by its device
    test.flush();
    EXPECT_THAT(test.rows(),
                ElementsAre("0.0 GPU 0 stream 8, of no action: gemm[10,20)@0", "1.0 GPU 0 stream 8: gemm[100,200)@0",
                            "1.1 GPU 0 stream 8, of no action: gemm[200,300)@0 gemm[300,400)@0", "1.2 GPU 2 stream 3, of no action: gemm[300,400)@0"));
    EXPECT_EQ(test.lanes.unattributed(), 4);
    for (const traces::Lane& lane : test.trace.lanes())
        EXPECT_EQ(traces::holdsKernels(lane.info()), lane.info().name.find("no action") == std::string::npos) << lane.info().name;
}

TEST(DeviceLanes, PutWhatComesTooLateOnAFurtherLane)
{
    Lanes test;
    test.lanes.add(kernel(markOf(0), {300, 400}));
    test.flush();
    test.lanes.add(kernel(markOf(0), {100, 200})); // its buffer was held up
    test.lanes.add(kernel(markOf(0), {400, 500}));
    test.lanes.add(kernel(markOf(0), {450, 550})); // beside it, on one stream
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[300,400)@0 gemm[400,500)@0",
                                         "0.1 GPU 0 stream 7 (2): gemm[100,200)@0 gemm[450,550)@0"));
    EXPECT_EQ(test.lanes.late(), 2);
}

TEST(DeviceLanes, ShowWhatTheHostWaitsFor)
{
    Lanes test;
    test.lanes.add(kernel(markOf(1), {100, 200}));
    const auto wait = [](SyncKind kind, Interval span) {
        return JoinedActivity{SyncActivity{.span = span, .context = 1, .stream = 7, .sync = kind}, kNoWork, std::nullopt};
    };
    test.lanes.add(wait(SyncKind::Stream, {90, 210}));
    test.lanes.add(wait(SyncKind::StreamWait, {300, 301})); // the host does not wait
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("1.0 GPU 0 stream 7: gemm[100,200)@0", "1.1 host waits: wait for stream[90,210)@0"));
    EXPECT_EQ(test.lanes.unattributed(), 0);
}

TEST(DeviceLanes, ShowCallsAndOverheadWhereAskedFor)
{
    for (const bool asked : {false, true}) {
        Lanes test({.calls = asked, .overhead = asked});
        test.lanes.add({ApiActivity{.span = {10, 20}, .name = NameId{2}, .thread = 42}, markOf(1), Interval{10, 20}});
        test.lanes.add({ApiActivity{.span = {30, 40}, .name = NameId{9}, .thread = 42}, kNoWork, Interval{30, 40}}); // of the same thread
        test.lanes.add({OverheadActivity{.span = {50, 60}, .overhead = OverheadKind::BufferFlush}, kNoWork, std::nullopt});
        test.flush();
        if (asked) {
            EXPECT_THAT(test.rows(), ElementsAre("0.0 overhead of recording: CUPTI flushes buffers[50,60)@0",
                                                 "1.0 CUDA calls of thread 42: relu[10,20)@0 call[30,40)@0"));
        } else {
            EXPECT_THAT(test.rows(), IsEmpty());
        }
        EXPECT_EQ(test.lanes.unattributed(), 0);
    }
}

TEST(DeviceLanes, ShowWhatTheHostTookOfTheDriversMemoryAndForWhat)
{
    Lanes test;
    const auto memory = [](MemoryOperation operation, traces::Bytes bytes, traces::TimeNs at) {
        return MemoryActivity{.at = at, .place = stream(0), .operation = operation, .bytes = bytes};
    };
    test.lanes.add({memory(MemoryOperation::Allocate, 20 << 20, 15), markOf(1), Interval{10, 20}});
    test.lanes.add({memory(MemoryOperation::Release, 1000, 50), kNoWork, std::nullopt});
    MemoryActivity pinned = memory(MemoryOperation::Allocate, 4096, 60);
    pinned.memory = traces::MemoryPlace::Pinned;
    test.lanes.add({pinned, markOf(1), Interval{55, 65}});
    test.lanes.add(kernel(kNoWork, {100, 200}, stream(0))); // a mark of an allocation says nothing of a stream's kernels
    test.flush();
    EXPECT_THAT(test.rows(),
                ElementsAre("0.0 GPU 0 stream 0, of no action: gemm[100,200)@0", "0.1 GPU 0 memory operations: release 1000 B[50,50)@0",
                            "1.0 GPU 0 memory operations: allocate 20 MiB for 1F0[10,20)@0 allocate 4 KiB of pinned memory of the host for 1F0[55,65)@0"));
    EXPECT_EQ(test.lanes.unattributed(), 1);
}

TEST(DeviceLanes, NamePeerCopiesByTheirDevices)
{
    Lanes test;
    for (const int begin : {100, 200}) {
        test.lanes.add({PeerCopyActivity{.span = {begin, begin + 10}, .place = stream(7), .from = 0, .to = 1, .bytes = 8}, markOf(0), std::nullopt});
    }
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: copy GPU 0 to GPU 1[100,110)@0 copy GPU 0 to GPU 1[200,210)@0"));
    EXPECT_EQ(test.trace.textCount(), 2U); // with the empty one
}

TEST(DeviceLanes, TellStepsBeyondWhatAMarkHolds)
{
    Lanes test;
    test.ranks.setStep(Step{5 * kSteps + 10});
    test.lanes.add(kernel(markOf(0, 5 * kSteps + 9), {100, 200}));
    test.flush();
    EXPECT_THAT(test.rows(), ElementsAre("0.0 GPU 0 stream 7: gemm[100,200)@" + std::to_string(5 * kSteps + 9)));
}

// Whatever comes in whatever order makes a trace that holds all of it.
TEST(DeviceLanes, LoseNothingInAnyOrder)
{
    std::mt19937 random(17);
    for (int round = 0; round < 50; ++round) {
        Lanes test({.calls = true, .overhead = true});
        std::size_t count = 0;
        for (int i = 0; i < 400; ++i) {
            const auto begin = static_cast<traces::TimeNs>(random() % 10'000);
            const Interval span{begin, begin + static_cast<traces::TimeNs>(random() % 50)};
            const WorkId work = random() % 5 == 0 ? kNoWork : markOf(static_cast<int>(random() % 2), static_cast<int>(random() % 3));
            const DevicePlace place = stream(static_cast<std::uint32_t>(random() % 3));
            switch (random() % 4) {
            case 0: test.lanes.add(copy(work, span, place)); break;
            case 1: test.lanes.add({SyncActivity{.span = span, .context = 1, .stream = 1, .sync = SyncKind::Event}, kNoWork, std::nullopt}); break;
            case 2: test.lanes.add({ApiActivity{.span = span, .thread = 1}, work, span}); break;
            default: test.lanes.add(kernel(work, span, place)); break;
            }
            ++count;
            if (random() % 30 == 0) test.flush();
        }
        test.flush();
        EXPECT_EQ(test.trace.sliceCount(), count);
    }
}

} // namespace

} // namespace stagecraft::runtime
