// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/exchanges.h"

#include "traces/analysis/merge_ranks.h"
#include "traces/analysis/stream_lanes.h"

#include <gmock/gmock.h>

#include <array>
#include <string>

namespace stagecraft::traces {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr TimeNs kUs = 1000; // all times are in microseconds
constexpr const char* kKernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

struct Each {
    const char* name;
    TimeNs begin;
    TimeNs end;
    int step = 0;
};

// Two ranks with what each exchanges and its kernels:
//
//   rank 0   0SEND_F0  100..400           500..900  0SEND_F1 + 0RECV_B0   step 1: 2000..2200  0SEND_F0
//   kernel             110..390           510..890                                2010..2190
//   rank 1   1RECV_F0  300..400  450..900  1RECV_F1 + 1SEND_B0            step 1: 1900..2200  1RECV_F0
//   kernel             310..390  460..890                                         1910..2190
class Exchanges : public testing::Test {
protected:
    Exchanges()
    {
        trace.info.ranks = 2;
        trace.info.stageToRank = {Rank{0}, Rank{1}};
        put(lane(trace, 0, "rank 0 exchanges"), {{"0SEND_F0", 100, 400}, {"0SEND_F1 + 0RECV_B0", 500, 900}, {"0SEND_F0", 2000, 2200, 1}});
        put(lane(trace, 1, "rank 1 exchanges"), {{"1RECV_F0", 300, 400}, {"1RECV_F1 + 1SEND_B0", 450, 900}, {"1RECV_F0", 1900, 2200, 1}});
    }
    void putKernels(std::initializer_list<Each> zero, std::initializer_list<Each> one)
    {
        put(lane(trace, 0, "GPU 0 stream 9, NCCL"), zero);
        put(lane(trace, 1, "GPU 1 stream 9, NCCL"), one);
    }
    void putAll()
    {
        putKernels({{kKernel, 20, 30}, {kKernel, 110, 390}, {kKernel, 510, 890}, {kKernel, 2010, 2190}},
                   {{kKernel, 20, 30}, {kKernel, 310, 390}, {kKernel, 460, 890}, {kKernel, 1910, 2190}});
    }
    static LaneId lane(Trace& to, int rank, const char* name)
    {
        return to.addLane({.rank = Rank{rank}, .kind = LaneKind::Stream, .depth = static_cast<std::int32_t>(to.laneCount()), .name = name});
    }
    void put(LaneId on, std::initializer_list<Each> all)
    {
        for (const Each& each : all)
            trace.append(on, {.begin = each.begin * kUs, .end = each.end * kUs, .action = {}, .step = Step{each.step}, .text = trace.addText(each.name)});
    }
    // "0SEND_F0 with 1: waiting 200, moving 80"
    static std::vector<std::string> told(const Trace& of, int step)
    {
        std::vector<std::string> out;
        for (const ExchangeKernel& each : exchangesOf(of, Step{step})) {
            const Slice kernel = of.slice(each.kernel);
            std::string text = of.sliceName(each.exchange) + " with " + (each.peer ? std::to_string(each.peer->value) : "nobody") + ": ";
            text += each.met ? "waiting " + std::to_string((*each.met - kernel.begin) / kUs) + ", moving " + std::to_string((kernel.end - *each.met) / kUs) : "not known";
            out.push_back(text);
        }
        return out;
    }

    Trace trace;
};

TEST_F(Exchanges, WaitUntilTheOtherRankHasBegun)
{
    putAll();
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0SEND_F0 with 1: waiting 200, moving 80", "0SEND_F1 + 0RECV_B0 with 1: waiting 0, moving 380",
                                                     "1RECV_F0 with 0: waiting 0, moving 80", "1RECV_F1 + 1SEND_B0 with 0: waiting 50, moving 380"));
    EXPECT_THAT(told(trace, 1), testing::ElementsAre("0SEND_F0 with 1: waiting 0, moving 180", "1RECV_F0 with 0: waiting 100, moving 180"));
    EXPECT_THAT(told(trace, 2), IsEmpty());
    EXPECT_EQ(ncclTimes(trace).at(Rank{1}), (NcclTime{.waiting = 150 * kUs, .moving = 640 * kUs, .notKnown = 10 * kUs})) << "what connects them is of no step";
    EXPECT_EQ(ncclTimeOf(trace, Rank{0}, {0, 350 * kUs}), (NcclTime{.waiting = 200 * kUs, .moving = 40 * kUs, .notKnown = 10 * kUs}));
    const std::optional<ExchangeKernel> second = exchangeOf(trace, {LaneId{3}, 2});
    ASSERT_TRUE(second);
    EXPECT_EQ(trace.sliceName(second->exchange), "1RECV_F1 + 1SEND_B0");
    EXPECT_EQ(second->met, 510 * kUs);
    EXPECT_EQ(exchangeOf(trace, {LaneId{3}, 0}), std::nullopt);
}

TEST_F(Exchanges, AreNotKnownWhereTheKernelsAreNotAsMany)
{
    putKernels({{kKernel, 110, 390}, {kKernel, 510, 890}, {kKernel, 2010, 2190}}, {{kKernel, 310, 390}, {kKernel, 1910, 2190}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0SEND_F0 with 1: not known", "0SEND_F1 + 0RECV_B0 with 1: not known"));
    EXPECT_THAT(told(trace, 1), SizeIs(2)) << "the next step is";
    EXPECT_EQ(ncclTimes(trace).at(Rank{0}), (NcclTime{.waiting = 0, .moving = 180 * kUs, .notKnown = 660 * kUs}));
}

TEST_F(Exchanges, AreNotKnownWhereAKernelLiesElsewhere)
{
    putKernels({{kKernel, 110, 390}, {kKernel, 420, 470}}, {{kKernel, 310, 390}, {kKernel, 460, 890}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0SEND_F0 with 1: waiting 200, moving 80", "1RECV_F0 with 0: waiting 0, moving 80",
                                                     "1RECV_F1 + 1SEND_B0 with 0: not known"));
}

TEST_F(Exchanges, AreNotKnownWithoutTheOtherRank)
{
    put(lane(trace, 0, "GPU 0 stream 9, NCCL"), {{kKernel, 110, 390}, {kKernel, 510, 890}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0SEND_F0 with 1: not known", "0SEND_F1 + 0RECV_B0 with 1: not known"));
    Trace alone;
    const LaneId exchanges = lane(alone, 0, "rank 0 exchanges");
    const LaneId kernels = lane(alone, 0, "GPU 0 stream 9, NCCL");
    alone.append(exchanges, {.begin = 0, .end = 100 * kUs, .action = {}, .text = alone.addText("0SEND_F0")});
    alone.append(kernels, {.begin = 0, .end = 100 * kUs, .action = {}, .text = alone.addText(kKernel)});
    EXPECT_THAT(told(alone, 0), testing::ElementsAre("0SEND_F0 with nobody: not known"));
}

// NCCL has room for a little, so that a send may be over before anybody receives. Nothing is received before it is sent.
TEST_F(Exchanges, OfWhatIsOnlySentMayWaitForNobody)
{
    putKernels({{kKernel, 110, 200}, {kKernel, 510, 890}, {kKernel, 2010, 2190}}, {{kKernel, 310, 390}, {kKernel, 450, 505}, {kKernel, 1910, 1920}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0SEND_F0 with 1: waiting 0, moving 90", "0SEND_F1 + 0RECV_B0 with 1: waiting 0, moving 380",
                                                     "1RECV_F0 with 0: waiting 0, moving 80", "1RECV_F1 + 1SEND_B0 with 0: not known"));
    EXPECT_THAT(told(trace, 1), testing::ElementsAre("0SEND_F0 with 1: waiting 0, moving 180", "1RECV_F0 with 0: not known"));
}

// CUPTI's times and the engine's are apart by a little, and steps may follow each other closely.
TEST_F(Exchanges, MayBeALittleBesideTheirKernels)
{
    putKernels({{kKernel, 95, 390}, {kKernel, 495, 910}, {kKernel, 1990, 2190}}, {{kKernel, 310, 405}, {kKernel, 460, 890}, {kKernel, 1910, 2210}});
    EXPECT_THAT(told(trace, 0), SizeIs(4));
    EXPECT_THAT(told(trace, 1), SizeIs(2));
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(exchangeOf(trace, {LaneId{2}, i})) << i;
    Trace close;
    const LaneId exchanges = lane(close, 0, "rank 0 exchanges");
    const LaneId kernels = lane(close, 0, "GPU 0 stream 9, NCCL");
    for (int step = 0; step < 3; ++step) {
        close.append(exchanges, {.begin = step * 10 * kUs, .end = (step * 10 + 8) * kUs, .action = {}, .step = Step{step}, .text = close.addText("0SEND_F0")});
        close.append(kernels, {.begin = (step * 10 + 2) * kUs, .end = (step * 10 + 9) * kUs, .action = {}, .text = close.addText(kKernel)});
    }
    for (int step = 0; step < 3; ++step) EXPECT_THAT(told(close, step), SizeIs(1)) << step;
}

// Each rank by a clock of its own, as its part has it: put on one clock the answer is the same, and says how well it is known.
TEST_F(Exchanges, AreThoseOfOneClock)
{
    putAll();
    const auto part = [&](int rank, TimeNs ahead) {
        Trace own;
        own.info = trace.info;
        own.addClockReading({.rank = Rank{rank}, .host = "host" + std::to_string(rank), .at = ahead, .offset = -ahead, .error = rank * 3 * kUs});
        for (const Lane& lane : trace.lanes()) {
            if (lane.info().rank != Rank{rank}) continue;
            const LaneId to = own.addLane(lane.info());
            for (std::size_t i = 0; i < lane.size(); ++i) {
                Slice slice = lane.slice(i);
                slice.begin += ahead;
                slice.end += ahead;
                slice.text = own.intern(trace.text(slice.text));
                own.append(to, slice);
            }
        }
        return own;
    };
    const Expected<Trace> whole = mergeRanks({part(0, 0), part(1, 777'777 * kUs)});
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    for (const int step : {0, 1}) {
        EXPECT_THAT(told(whole.value(), step), testing::UnorderedElementsAreArray(told(trace, step)));
        for (const ExchangeKernel& each : exchangesOf(whole.value(), Step{step})) EXPECT_EQ(each.clockError, 3 * kUs);
    }
}

constexpr const char* kSumKernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

// Four ranks, two replicas of two stages: what they sum in two steps, of stage 1 in two buckets.
//
//   rank 1   1ALL_REDUCE 100..200 210..400    step 1: 1100..1200 1210..1400
//   rank 3   1ALL_REDUCE 120..200 250..400            1120..1200 1250..1400
//   rank 0   0ALL_REDUCE 500..600                     1500..1600
//   rank 2   0ALL_REDUCE 500..600                     1500..1600
class Sums : public Exchanges {
protected:
    Sums()
    {
        trace = Trace();
        trace.info.ranks = 4;
        trace.info.stageToRank = {Rank{0}, Rank{1}};
        for (int rank = 0; rank < 4; ++rank) {
            collectives[rank] = trace.addLane({.rank = Rank{rank}, .kind = LaneKind::Collective, .name = "collectives"});
            kernels[rank] = lane(trace, rank, "GPU 0 stream 9, NCCL");
        }
        for (int step = 0; step < 2; ++step) {
            sum(1, 100, 200, step);
            sum(1, 210, 400, step);
            sum(3, 120, 200, step);
            sum(3, 250, 400, step);
            for (const int rank : {0, 2}) sum(rank, 500, 600, step);
        }
    }
    void sum(int rank, TimeNs begin, TimeNs end, int step)
    {
        trace.append(collectives[rank], {.begin = (begin + step * 1000) * kUs, .end = (end + step * 1000) * kUs,
                                         .action = makeAction(ActionKind::AllReduce, Stage{rank % 2}, kNoMicroBatch), .step = Step{step}});
    }

    std::array<LaneId, 4> collectives{};
    std::array<LaneId, 4> kernels{};
};

TEST_F(Sums, MoveOnceTheLastRankHasBegun)
{
    put(kernels[1], {{kSumKernel, 101, 199}, {kSumKernel, 211, 399}, {kSumKernel, 1101, 1199}, {kSumKernel, 1211, 1399}});
    put(kernels[3], {{kSumKernel, 121, 199}, {kSumKernel, 251, 399}, {kSumKernel, 1121, 1199}, {kSumKernel, 1251, 1399}});
    put(kernels[0], {{kSumKernel, 20, 40}, {kSumKernel, 501, 599}}); // the first connects them
    put(kernels[2], {{kSumKernel, 502, 599}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("0ALL_REDUCE with 2: waiting 1, moving 97", "1ALL_REDUCE with 3: waiting 20, moving 78",
                                                     "1ALL_REDUCE with 3: waiting 40, moving 148", "0ALL_REDUCE with 0: waiting 0, moving 97",
                                                     "1ALL_REDUCE with 1: waiting 0, moving 78", "1ALL_REDUCE with 1: waiting 0, moving 148"));
    EXPECT_THAT(told(trace, 1), SizeIs(4));
    EXPECT_EQ(ncclTimes(trace).at(Rank{1}), (NcclTime{.waiting = 120 * kUs, .moving = 452 * kUs, .notKnown = 0}));
    EXPECT_EQ(ncclTimes(trace).at(Rank{0}), (NcclTime{.waiting = 1 * kUs, .moving = 97 * kUs, .notKnown = 20 * kUs}));
    EXPECT_EQ(exchangeOf(trace, {kernels[0], 0}), std::nullopt);
    const std::optional<ExchangeKernel> later = exchangeOf(trace, {kernels[1], 3});
    ASSERT_TRUE(later);
    EXPECT_EQ(later->exchange, (SliceRef{collectives[1], 3}));
}

// NCCL makes as many kernels of a sum as it likes, of each rank's part as many.
TEST_F(Sums, MayHaveSeveralKernels)
{
    put(kernels[1], {{kSumKernel, 101, 150}, {kSumKernel, 151, 199}});
    put(kernels[3], {{kSumKernel, 121, 150}, {kSumKernel, 155, 199}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("1ALL_REDUCE with 3: waiting 20, moving 29", "1ALL_REDUCE with 3: waiting 4, moving 44",
                                                     "1ALL_REDUCE with 1: waiting 0, moving 29", "1ALL_REDUCE with 1: waiting 0, moving 44"));
}

TEST_F(Sums, AreNotKnownWhereARankHasNotAsManyKernels)
{
    put(kernels[1], {{kSumKernel, 101, 150}, {kSumKernel, 151, 199}, {kSumKernel, 211, 399}});
    put(kernels[3], {{kSumKernel, 121, 150}, {kSumKernel, 251, 399}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("1ALL_REDUCE with 3: not known", "1ALL_REDUCE with 3: not known", "1ALL_REDUCE with 3: waiting 40, moving 148",
                                                     "1ALL_REDUCE with 1: not known", "1ALL_REDUCE with 1: waiting 0, moving 148"));
}

// None of a sum ends before all have begun.
TEST_F(Sums, AreNotKnownWhereTheClocksDoNotAgree)
{
    put(kernels[1], {{kSumKernel, 101, 119}});
    put(kernels[3], {{kSumKernel, 121, 199}});
    EXPECT_THAT(told(trace, 0), testing::ElementsAre("1ALL_REDUCE with 3: not known", "1ALL_REDUCE with 1: waiting 0, moving 78"));
}

// In two directions rank 1 holds stage 0 as well, for the other: three more parts of one sum.
TEST_F(Sums, OfBothDirectionsAreOne)
{
    for (const int rank : {1, 3})
        trace.append(collectives[rank], {.begin = 2500 * kUs, .end = 2600 * kUs, .action = makeAction(ActionKind::AllReduce, Stage{0}, kNoMicroBatch, Flow::Up), .step = Step{2}});
    for (const int rank : {0, 2})
        trace.append(collectives[rank], {.begin = 2500 * kUs, .end = 2600 * kUs, .action = makeAction(ActionKind::AllReduce, Stage{0}, kNoMicroBatch, Flow::Down), .step = Step{2}});
    for (int rank = 0; rank < 4; ++rank) put(kernels[rank], {{kSumKernel, 2501 + 10 * rank, 2599}});
    EXPECT_THAT(told(trace, 2), testing::ElementsAre(testing::HasSubstr("with 3: waiting 30, moving 68"), testing::HasSubstr("with 3: waiting 20, moving 68"),
                                                     testing::HasSubstr("with 3: waiting 10, moving 68"), testing::HasSubstr("with 2: waiting 0, moving 68")));
}

TEST(ExchangeText, NamesWhatGoesBothWays)
{
    const Action both{makeAction(ActionKind::SendForward, Stage{3}, MicroBatch{2}, Flow::Up).work,
                      makeAction(ActionKind::RecvBackward, Stage{3}, MicroBatch{0}, Flow::Up).work};
    EXPECT_EQ(exchangeText(both), "u3SEND_F2 + u3RECV_B0");
    for (const Action& each : {both, Action{both.work, {}}}) EXPECT_EQ(exchangeOfText(exchangeText(each)), each);
    for (const char* none : {"", "gemm", "0F0", "0SEND_F1 + gemm", "0SEND_F1 + 0F0"}) EXPECT_EQ(exchangeOfText(none), std::nullopt) << none;
}

} // namespace
} // namespace stagecraft::traces
