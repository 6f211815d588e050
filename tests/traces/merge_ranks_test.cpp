// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/staircase.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/merge_ranks.h"
#include "traces/analysis/rank_clocks.h"
#include "traces/format/trace_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stagecraft::traces {
namespace {

constexpr TimeNs kLatency = 300;
constexpr TimeNs kOrigin = 1'000'000;

// What rank `rank` of a run would have written by itself, on a clock that is `offset` before the trace's and drifts by one nanosecond in
// `drift`: nothing of the others, but a send of no length for what it gave and a receive for what it got.
Trace partOf(const Trace& whole, Rank rank, TimeNs offset, TimeNs drift = 0)
{
    const auto own = [&](TimeNs t) { return t - offset - (drift == 0 ? 0 : (t - kOrigin) / drift); };
    Trace part;
    part.info = whole.info;
    part.info.host = "host " + std::to_string(rank.value);
    const LaneId compute = part.addLane({.rank = rank, .kind = LaneKind::Compute, .name = "rank " + std::to_string(rank.value)});
    const LaneId sendLane = part.addLane({.rank = rank, .kind = LaneKind::Transfer, .name = "sends"});
    const LaneId receiveLane = part.addLane({.rank = rank, .kind = LaneKind::Transfer, .depth = 1, .name = "receives"});
    const LaneId lane = *whole.findLane(rank, LaneKind::Compute);
    for (std::uint32_t i = 0; i < whole.lane(lane).size(); ++i) {
        Slice slice = whole.lane(lane).slice(i);
        slice.begin = own(slice.begin);
        slice.end = own(slice.end);
        const SliceRef consumer = part.append(compute, slice);
        const bool forward = slice.action.kind() == ActionKind::Forward;
        for (const Edge& edge : whole.edgesInto({lane, i})) {
            if (edge.from.lane == lane) {
                part.addEdge({edge.kind, {compute, edge.from.index}, consumer, own(edge.ready)});
                continue;
            }
            const Action receive = makeAction(forward ? ActionKind::RecvForward : ActionKind::RecvBackward, slice.action.stage(), slice.action.microbatch());
            const TimeNs ready = own(edge.ready);
            const SliceRef from = part.append(receiveLane, {.begin = ready, .end = ready, .action = receive, .step = slice.step});
            part.addEdge({EdgeKind::Data, from, consumer, ready});
        }
        for (const Edge& edge : whole.edgesFrom({lane, i})) {
            if (edge.to.lane == lane) continue;
            const Action send = makeAction(forward ? ActionKind::SendForward : ActionKind::SendBackward, slice.action.stage(), slice.action.microbatch());
            part.append(sendLane, {.begin = slice.end, .end = slice.end, .action = send, .step = slice.step});
        }
    }
    for (const StepSpan& step : whole.steps()) part.addStep({step.step, {own(step.span.begin), own(step.span.end)}, rank == Rank{0} ? step.loss : std::nullopt});
    part.addMemory(rank, MemoryClass::Weights, own(kOrigin), 4096);
    const TimeNs end = whole.extent().end;
    for (const TimeNs t : {kOrigin, end})
        part.addClockReading({.rank = rank, .host = part.info.host, .at = own(t), .offset = t - own(t), .error = rank == Rank{0} ? 0 : 400});
    return part;
}

Trace run()
{
    Trace trace = test::staircase({"0F0 0F1 .   .   0B0 .   0B1", ".   1F0 1B0 1F1 1B1"}, {.latency = kLatency, .origin = kOrigin});
    trace.info.label = TraceLabel::Measured;
    trace.info.clock = ClockKind::Monotonic;
    trace.addStep({Step{0}, {kOrigin, kOrigin + 7000}, 2.5});
    return trace;
}

std::multiset<std::tuple<std::int32_t, std::string, TimeNs, TimeNs>> computingOf(const Trace& trace)
{
    std::multiset<std::tuple<std::int32_t, std::string, TimeNs, TimeNs>> all;
    for (const Lane& lane : trace.lanes())
        for (std::size_t i = 0; lane.info().kind == LaneKind::Compute && i < lane.size(); ++i)
            all.emplace(lane.info().rank.value, toText(lane.slice(i).action), lane.begin(i), lane.end(i));
    return all;
}

std::multiset<std::tuple<std::string, std::string, TimeNs>> edgesOf(const Trace& trace)
{
    std::multiset<std::tuple<std::string, std::string, TimeNs>> all;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (const Edge& edge : trace.edgesOfLane(LaneId{l})) all.emplace(trace.sliceName(edge.from), trace.sliceName(edge.to), edge.ready);
    return all;
}

TEST(MergeRanks, BringsPartsOnOtherClocksBackToTheRunThatTheyAreOf)
{
    const Trace whole = run();
    const std::vector<Trace> parts{partOf(whole, Rank{1}, 123'456'789), partOf(whole, Rank{0}, 0)}; // in any order
    const Expected<Trace> merged = mergeRanks(parts);
    ASSERT_TRUE(merged.ok()) << merged.error().message;
    EXPECT_EQ(computingOf(merged.value()), computingOf(whole));
    EXPECT_EQ(edgesOf(merged.value()), edgesOf(whole));
    EXPECT_EQ(merged.value().steps(), whole.steps());
    EXPECT_EQ(merged.value().info.host, "host 0");
    EXPECT_EQ(merged.value().memorySeries(Rank{1}, MemoryClass::Weights)->time.front(), kOrigin);
    EXPECT_TRUE(merged.value().notes().empty());
    const StepFigures expected = stepFigures(whole, Step{0}).value();
    const StepFigures figures = stepFigures(merged.value(), Step{0}).value();
    EXPECT_EQ(figures.makespan, expected.makespan);
    EXPECT_EQ(figures.ranks[1].idleByCause, expected.ranks[1].idleByCause);
}

TEST(MergeRanks, MakesOneHandOffOfASendAndItsReceive)
{
    const Trace whole = run();
    const Trace merged = mergeRanks({partOf(whole, Rank{0}, 0), partOf(whole, Rank{1}, -5'000'000)}).value();
    const Lane& sends = merged.lane(*merged.findLane(Rank{0}, LaneKind::Transfer));
    ASSERT_EQ(sends.size(), 2U);
    EXPECT_EQ(toText(sends.slice(0).action), "0SEND_F0");
    EXPECT_EQ(sends.begin(0), kOrigin + 1000);
    EXPECT_EQ(sends.end(0), kOrigin + 1000 + kLatency);
    EXPECT_FALSE(merged.findLane(Rank{1}, LaneKind::Transfer, 1)); // receives are part of the hand-off
}

// Two replicas of one rank each: the second goes back until 300 later than the first, whose sum has an edge from its own backward alone, and
// begins with that as NCCL's kernel does.
std::vector<Trace> partsWithSums(int ofFirst)
{
    std::vector<Trace> parts;
    for (const int r : {0, 1}) {
        const TimeNs late = 300 * r;
        Trace& part = parts.emplace_back();
        part.info.label = TraceLabel::Measured;
        part.info.clock = ClockKind::Monotonic;
        part.info.ranks = 2;
        part.info.microbatches = 1;
        part.info.stageToRank = {Rank{0}};
        const std::string name = "replica " + std::to_string(r) + " · rank 0";
        const LaneId compute = part.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = name});
        part.addLane({.rank = Rank{r}, .kind = LaneKind::Transfer, .name = name + " sends"});
        const LaneId sums = part.addLane({.rank = Rank{r}, .kind = LaneKind::Collective, .name = name + " collectives"});
        const auto action = [](ActionKind kind) { return makeAction(kind, Stage{0}, kNoMicroBatch); };
        const SliceRef backward = part.append(compute, {.begin = 0, .end = 1000 + late, .action = makeAction(ActionKind::Backward, Stage{0}, MicroBatch{0}), .step = Step{0}});
        SliceRef sum;
        for (int k = 0; k < (r == 0 ? ofFirst : 1); ++k) {
            sum = part.append(sums, {.begin = 1000 + late + 380 * k, .end = 1380 + 20 * k, .action = action(ActionKind::AllReduce), .step = Step{0}});
            part.addEdge({EdgeKind::Data, backward, sum, 1000 + late});
        }
        const SliceRef update = part.append(compute, {.begin = 1400, .end = 1500, .action = action(ActionKind::Optimizer), .step = Step{0}});
        part.addEdge({EdgeKind::Data, sum, update, 1400});
        part.addClockReading({.rank = Rank{r}, .host = "here", .at = 0, .offset = 0, .error = 0});
    }
    return parts;
}

TEST(MergeRanks, LetsASumOfReplicasWaitForTheLastThatGives)
{
    const Expected<Trace> whole = mergeRanks(partsWithSums(1));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const Trace& trace = whole.value();
    const LaneId last = *trace.findLane(Rank{1}, LaneKind::Compute);
    for (const int r : {0, 1}) {
        const LaneId sums = *trace.findLane(Rank{r}, LaneKind::Collective);
        EXPECT_EQ(trace.lane(sums).begin(0), 1300);
        EXPECT_EQ(trace.lane(sums).end(0), 1380);
        const std::vector<Edge> toSum = trace.edgesInto({sums, 0});
        ASSERT_EQ(toSum.size(), 1U);
        EXPECT_EQ(toSum.front().from, (SliceRef{last, 0}));
        EXPECT_EQ(toSum.front().ready, 1300);
        const LaneId compute = *trace.findLane(Rank{r}, LaneKind::Compute);
        EXPECT_EQ(trace.edgesInto({compute, 1}).front().from.lane, *trace.findLane(Rank{r}, LaneKind::Collective));
        EXPECT_EQ(trace.lane(*trace.findLane(Rank{r}, LaneKind::Transfer)).info().name, "replica " + std::to_string(r) + " · rank 0 sends");
    }
}

// Which of the first's two is the one that the second has was not recorded.
TEST(MergeRanks, LeavesSumsAloneOfWhichSomeAreLost)
{
    const Expected<Trace> whole = mergeRanks(partsWithSums(2));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const LaneId sums = *whole.value().findLane(Rank{0}, LaneKind::Collective);
    EXPECT_EQ(whole.value().lane(sums).begin(0), 1000);
    EXPECT_EQ(whole.value().edgesInto({sums, 0}).front().from.lane, *whole.value().findLane(Rank{0}, LaneKind::Compute));
}

// One nanosecond in a thousand is 1000 ppm, far more than any crystal: the two readings take it out to the rounding of a nanosecond.
TEST(MergeRanks, TakesOutADriftBetweenTwoReadings)
{
    const Trace whole = run();
    const Trace merged = mergeRanks({partOf(whole, Rank{0}, 0), partOf(whole, Rank{1}, 77'000, 1000)}).value();
    const Lane& lane = merged.lane(*merged.findLane(Rank{1}, LaneKind::Compute));
    const Lane& expected = whole.lane(*whole.findLane(Rank{1}, LaneKind::Compute));
    for (std::size_t i = 0; i < lane.size(); ++i) EXPECT_NEAR(static_cast<double>(lane.begin(i)), static_cast<double>(expected.begin(i)), 1.0);
    const std::vector<ClockSummary> clocks = clockSummaries(merged);
    ASSERT_EQ(clocks.size(), 2U);
    EXPECT_TRUE(clocks[0].shared);
    EXPECT_FALSE(clocks[1].shared);
    EXPECT_NEAR(clocks[1].driftPpm.value(), 1000, 2);
    EXPECT_EQ(clocks[1].error, 400);
}

TEST(MergeRanks, SaysWhoseHandOffsTheClocksPutBeforeTheirSend)
{
    const Trace whole = run();
    const Trace merged = mergeRanks({partOf(whole, Rank{0}, 0), [&] {
                                         Trace wrong = partOf(whole, Rank{1}, 2000);
                                         Trace shifted = wrong.slicesOnly();
                                         for (std::size_t l = 0; l < wrong.laneCount(); ++l)
                                             for (const Edge& edge : wrong.edgesOfLane(LaneId{l})) shifted.addEdge(edge);
                                         shifted.addClockReading({.rank = Rank{1}, .host = "", .at = 0, .offset = 1000, .error = 100});
                                         return shifted;
                                     }()})
                             .value();
    ASSERT_EQ(merged.notes().size(), 1U);
    EXPECT_NE(merged.notes().front().find("before they were sent"), std::string::npos);
}

// Each process has a reserve of its own and reads what all use: 100 of rank 0 and, from 2000 on, 300 of rank 1, beside 50 of others.
TEST(MergeRanks, MakesOnePictureOfAGpuThatTwoProcessesShare)
{
    const Trace whole = run();
    constexpr TimeNs kOffset = 1'000'000'000;
    Trace first = partOf(whole, Rank{0}, 0);
    Trace second = partOf(whole, Rank{1}, kOffset);
    const Gpu card{.host = "here", .number = 0, .name = "H200", .bus = "1b", .total = 1000, .ranks = {Rank{0}}};
    Gpu same = card;
    same.number = 2; // as its process counts
    same.ranks = {Rank{1}};
    const GpuId a = first.addGpu(card);
    const GpuId b = second.addGpu(same);
    first.addGpuMemory(a, kOrigin, {.active = 80, .reserved = 100, .used = 150});
    second.addGpuMemory(b, kOrigin + 2000 - kOffset, {.active = 200, .reserved = 300, .used = 450});
    first.addGpuMemory(a, kOrigin + 3000, {.active = 10, .reserved = 100, .used = 150}); // it has not asked the driver since
    Gpu elsewhere = card;
    elsewhere.host = "there";
    second.addGpuMemory(second.addGpu(elsewhere), kOrigin - kOffset, {.used = 7});
    first.addInformation("boundary tensors go by NCCL");
    second.addInformation("boundary tensors go by NCCL");

    const Trace merged = mergeRanks({first, second}).value();
    ASSERT_EQ(merged.gpus().size(), 2U);
    const GpuSeries& shared = merged.gpus()[0];
    EXPECT_EQ(shared.gpu.ranks, (std::vector<Rank>{Rank{0}, Rank{1}}));
    EXPECT_EQ(shared.gpu.number, 0);
    EXPECT_EQ(shared.time, (std::vector<TimeNs>{kOrigin, kOrigin + 2000, kOrigin + 3000}));
    EXPECT_EQ(shared.value[0], (GpuMemory{.active = 80, .reserved = 100, .used = 150}));
    EXPECT_EQ(shared.value[1], (GpuMemory{.active = 280, .reserved = 400, .used = 450}));
    EXPECT_EQ(shared.value[2], (GpuMemory{.active = 210, .reserved = 400, .used = 450}));
    for (const GpuMemory& now : shared.value) EXPECT_EQ(now.other(), 50);
    EXPECT_EQ(merged.gpus()[1].gpu.host, "there");
    EXPECT_EQ(merged.information(), std::vector<std::string>{"boundary tensors go by NCCL"});
}

TEST(MergeRanks, KeepsWhatIsThereOfARunThatLostARank)
{
    const Trace whole = run();
    Trace part = partOf(whole, Rank{0}, 0);
    const Trace merged = mergeRanks({part}).value();
    EXPECT_EQ(merged.notes(), std::vector<std::string>{"the part of rank 1 is missing"});
    EXPECT_EQ(computingOf(merged).size(), 4U);

    Trace broken = partOf(whole, Rank{1}, 0);
    Trace withoutStep = broken.slicesOnly();
    EXPECT_TRUE(mergeRanks({part, withoutStep}).value().steps().empty()); // the step was not over everywhere
}

TEST(MergeRanks, RefusesWhatIsNotOfOneRun)
{
    const Trace whole = run();
    const Trace zero = partOf(whole, Rank{0}, 0);
    Trace other = partOf(whole, Rank{1}, 0);
    other.info.planJson = "{}";
    EXPECT_NE(mergeRanks({zero, other}).error().message.find("different runs"), std::string::npos);
    EXPECT_NE(mergeRanks({zero, zero}, {"a", "b"}).error().message.find("a and b are both of rank 0"), std::string::npos);
    EXPECT_NE(mergeRanks({zero, whole}).error().message.find("whole"), std::string::npos);
    EXPECT_FALSE(mergeRanks({}).ok());
    EXPECT_TRUE(isRankPart(zero));
    EXPECT_FALSE(isRankPart(whole));
}

// Two runs of one plan differ in nothing else that is the same for all ranks.
TEST(MergeRanks, RefusesPartsOfTwoRunsOfOnePlan)
{
    const Trace whole = run();
    const auto part = [&](int rank, std::string_view identity) {
        Trace trace = partOf(whole, Rank{rank}, 0);
        trace.addInformation("by NCCL");
        if (!identity.empty()) trace.addInformation(partOfRun(identity));
        return trace;
    };
    EXPECT_EQ(runOfPart(part(0, "4f1c")), "4f1c");
    EXPECT_EQ(runOfPart(part(0, "")), "");
    const std::vector<std::string> files{"k2.rank0.strace", "k1.rank1.strace"};
    for (const std::string_view other : {"4f1d", ""}) { // the last by an older build
        const Expected<Trace> joined = mergeRanks({part(0, "4f1c"), part(1, other)}, files);
        ASSERT_FALSE(joined.ok());
        EXPECT_NE(joined.error().message.find("k2.rank0.strace and k1.rank1.strace are of different runs"), std::string::npos) << joined.error().message;
        EXPECT_NE(joined.error().message.find("Give the parts that one run has left"), std::string::npos);
    }
    const Expected<Trace> joined = mergeRanks({part(0, "4f1c"), part(1, "4f1c")}, files);
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    EXPECT_EQ(joined.value().information(), std::vector<std::string>{"by NCCL"}) << "a whole needs no mark";
    EXPECT_TRUE(mergeRanks({part(0, ""), part(1, "")}).ok()) << "older parts still join";
}

TEST(MergeRanks, KnowsTheRunOfAPartInEveryForm)
{
    const test::TemporaryFolder folder;
    Trace part = partOf(run(), Rank{1}, 0);
    part.addInformation(partOfRun("4f1c"));
    for (const char* name : {"part.strace", "part.json", "part.json.gz"}) {
        ASSERT_TRUE(saveTrace(part, folder.file(name)).ok());
        const Trace again = loadTrace(folder.file(name)).value();
        EXPECT_TRUE(isRankPart(again));
        EXPECT_EQ(runOfPart(again), "4f1c") << name;
    }
}

TEST(MergeRanks, SaysWhatInAPartNoRankCanHaveWritten)
{
    const Trace whole = run();
    const Trace one = partOf(whole, Rank{1}, 0);
    Trace zero = partOf(whole, Rank{0}, 0);
    const LaneId compute = *zero.findLane(Rank{0}, LaneKind::Compute);
    const LaneId sends = *zero.findLane(Rank{0}, LaneKind::Transfer);
    zero.addEdge({EdgeKind::Data, {sends, 0}, {compute, 3}, kOrigin}); // it waits for what it sends
    const Expected<Trace> waiting = mergeRanks({zero, one});
    ASSERT_FALSE(waiting.ok());
    EXPECT_NE(waiting.error().message.find("the part of rank 0: "), std::string::npos);
    EXPECT_NE(waiting.error().message.find("0B1 waits for 0SEND_F0"), std::string::npos) << waiting.error().message;

    Trace backwards = one.slicesOnly(); // its clock would run back twice as fast as it goes
    for (const TimeNs t : {TimeNs{0}, 2 * kOrigin}) backwards.addClockReading({.rank = Rank{1}, .host = "", .at = t, .offset = -2 * t, .error = 0});
    const Expected<Trace> turned = mergeRanks({partOf(whole, Rank{0}, 0), backwards});
    ASSERT_FALSE(turned.ok());
    EXPECT_NE(turned.error().message.find("the part of rank 1: "), std::string::npos) << turned.error().message;
}

TEST(RankClocks, StayBeforeTheFirstReadingAndAfterTheLast)
{
    const auto reading = [](TimeNs at, TimeNs offset) { return ClockReading{.rank = Rank{1}, .host = "b", .at = at, .offset = offset, .error = 10}; };
    const RankClock clock({reading(2000, 110), reading(1000, 100)});
    EXPECT_EQ(clock.onTrace(0), 100);
    EXPECT_EQ(clock.onTrace(1000), 1100);
    EXPECT_EQ(clock.onTrace(1500), 1605);
    EXPECT_EQ(clock.onTrace(3000), 3110);
    EXPECT_EQ(RankClock({}).onTrace(7), 7);
    // beyond what a double holds
    const TimeNs late = (TimeNs{1} << 60) + 1;
    EXPECT_EQ(RankClock({reading(0, -5)}).onTrace(late), late - 5);
}

TEST(RankClocks, SayWhatAPersonWantsToKnow)
{
    EXPECT_EQ(toText(ClockSummary{.rank = Rank{1}, .host = "b", .offset = -1'500'000, .error = 410, .driftPpm = 0.25}),
              "rank 1 on b: -1.5 ms ± 410 ns, drift 0.25 ppm");
    EXPECT_EQ(toText(ClockSummary{.rank = Rank{0}, .host = "", .driftPpm = {}, .shared = true}), "rank 0: the trace's own clock");
}

} // namespace
} // namespace stagecraft::traces
