// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/staircase.h"
#include "traces/analysis/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;

constexpr Step kStep{0};

// 4 ranks, 5 micro-batches, F = B = 1 (GPipe, arXiv 1811.06965: bubble (p-1)/(m+p-1) = 3/8).
const std::vector<std::string> kGPipe{
    "0F0 0F1 0F2 0F3 0F4 .   .   .   .   .   .   0B0 0B1 0B2 0B3 0B4",
    ".   1F0 1F1 1F2 1F3 1F4 .   .   .   .   1B0 1B1 1B2 1B3 1B4",
    ".   .   2F0 2F1 2F2 2F3 2F4 .   .   2B0 2B1 2B2 2B3 2B4",
    ".   .   .   3F0 3F1 3F2 3F3 3F4 3B0 3B1 3B2 3B3 3B4",
};
const std::vector<std::string> k1F1B{
    "0F0 0F1 0F2 0F3 .   .   .   0B0 0F4 0B1 .   0B2 .   0B3 .   0B4",
    ".   1F0 1F1 1F2 .   .   1B0 1F3 1B1 1F4 1B2 .   1B3 .   1B4",
    ".   .   2F0 2F1 .   2B0 2F2 2B1 2F3 2B2 2F4 2B3 .   2B4",
    ".   .   .   3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4",
};

// GPipe's times in closed form: the last forward ends at (m+p-1)F, backwards leave the last rank one after another.
Trace gpipe(int p, int m, TimeNs f, TimeNs b)
{
    Trace trace;
    for (int r = 0; r < p; ++r) {
        const LaneId lane = trace.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = ""});
        for (int i = 0; i < m; ++i)
            trace.append(lane, {.begin = f * (r + i), .end = f * (r + i + 1), .action = forward(Stage{r}, MicroBatch{i})});
        for (int i = 0; i < m; ++i) {
            const TimeNs begin = f * (m + p - 1) + b * (p - 1 - r + i);
            trace.append(lane, {.begin = begin, .end = begin + b, .action = backward(Stage{r}, MicroBatch{i})});
        }
    }
    test::addDataEdges(trace, 0, kStep);
    return trace;
}

StepFigures figuresOf(const Trace& trace, Step step = kStep)
{
    const Expected<StepFigures> figures = stepFigures(trace, step);
    EXPECT_TRUE(figures.ok());
    return figures.value();
}

std::vector<double> peaks(const StepFigures& figures)
{
    std::vector<double> all;
    for (const RankFigures& rank : figures.ranks) all.push_back(rank.peakActivations);
    return all;
}

TimeNs idleOf(const RankFigures& rank, GapCause cause) { return rank.idleByCause[static_cast<std::size_t>(cause)]; }

void expectTiled(const Trace& trace, Step step)
{
    const StepFigures figures = figuresOf(trace, step);
    std::map<Rank, TimeNs> gaps;
    for (const Gap& gap : gapsOf(trace, step)) {
        EXPECT_LT(gap.span.begin, gap.span.end);
        gaps[gap.rank] += gap.span.length();
    }
    for (const RankFigures& rank : figures.ranks) {
        EXPECT_EQ(rank.busy + rank.idle, figures.makespan) << "rank " << rank.rank.value;
        EXPECT_EQ(std::accumulate(rank.idleByCause.begin(), rank.idleByCause.end(), TimeNs{0}), rank.idle);
        EXPECT_EQ(gaps[rank.rank], rank.idle);
    }
}

TEST(StepFigures, GivesTheThreeBubblesOfGPipe)
{
    const StepFigures f = figuresOf(staircase(kGPipe));
    EXPECT_EQ(f.makespan, 16'000);
    EXPECT_EQ(f.maxSpan, 16'000);
    EXPECT_EQ(f.work, 10'000.0);
    EXPECT_EQ(f.bubbleMakespan, 0.375);
    EXPECT_EQ(f.bubbleSpan, 0.375);
    EXPECT_DOUBLE_EQ(f.bubbleOverIdeal, 0.6); // (p-1)/m
    EXPECT_THAT(peaks(f), ElementsAre(5, 5, 5, 5));
    EXPECT_EQ(f.steady, (Interval{3000, 13'000}));
}

TEST(StepFigures, KeepsFewerActivationsIn1F1B)
{
    const StepFigures f = figuresOf(staircase(k1F1B));
    EXPECT_EQ(f.makespan, 16'000);
    EXPECT_EQ(f.bubbleMakespan, 0.375);
    EXPECT_THAT(peaks(f), ElementsAre(4, 3, 2, 1));
    expectTiled(staircase(k1F1B), kStep);
}

struct GoldenRow {
    int p, m;
    TimeNs makespan11, makespan12;
    double bubble;
};
void PrintTo(const GoldenRow& row, std::ostream* out) { *out << row.p << " ranks, " << row.m << " micro-batches"; }

class GPipeGolden : public testing::TestWithParam<GoldenRow> {};

TEST_P(GPipeGolden, MatchesTheUnitTimeTable)
{
    const GoldenRow& row = GetParam();
    const Trace equal = gpipe(row.p, row.m, 1, 1);
    const Trace twice = gpipe(row.p, row.m, 1, 2);
    EXPECT_EQ(figuresOf(equal).makespan, row.makespan11);
    EXPECT_EQ(figuresOf(twice).makespan, row.makespan12);
    EXPECT_NEAR(figuresOf(equal).bubbleMakespan, row.bubble, 5e-5);
    EXPECT_NEAR(figuresOf(twice).bubbleMakespan, row.bubble, 5e-5);
    EXPECT_THAT(peaks(figuresOf(twice)), testing::Each(row.m));
    expectTiled(twice, kStep);
}
INSTANTIATE_TEST_SUITE_P(Rows, GPipeGolden,
                         testing::Values(GoldenRow{4, 1, 8, 12, .7500}, GoldenRow{4, 5, 16, 24, .3750},
                                         GoldenRow{4, 8, 22, 33, .2727}, GoldenRow{8, 24, 62, 93, .2258},
                                         GoldenRow{8, 64, 142, 213, .0986}),
                         [](const auto& row) {
                             return "p" + std::to_string(row.param.p) + "_m" + std::to_string(row.param.m);
                         });

TEST(StepFigures, DividesTheSpanBubbleByTheLongestRank)
{
    // ZB-H2's point: each rank is full, the parallelogram is not
    const StepFigures f = figuresOf(staircase({
        "0F0 0I0 0W0 .",
        ".   1F0 1I0 1W0",
    }));
    EXPECT_EQ(f.bubbleSpan, 0.0);
    EXPECT_EQ(f.bubbleMakespan, 0.25);
}

TEST(StepFigures, CountsChunksAsPartsOfAMicroBatch)
{
    const StepFigures f = figuresOf(staircase({"0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1"}, {.chunks = 2}));
    EXPECT_THAT(peaks(f), ElementsAre(2));
    const StepFigures half = figuresOf(staircase({"0F0 1F0 0F1 1B0 0B0 0B1"}, {.chunks = 2}));
    EXPECT_THAT(peaks(half), ElementsAre(1.5));
}

TEST(StepFigures, FreesActivationsAtTheWeightGradientOfASplitBackward)
{
    EXPECT_THAT(peaks(figuresOf(staircase({"0F0 0I0 0F1 0I1 0W0 0F2 0W1"}))), ElementsAre(2));
    EXPECT_THAT(peaks(figuresOf(staircase({"0F0 (0F1;0B0)OVERLAP_F_B 0B1"}))), ElementsAre(2));
}

TEST(StepFigures, TakesThePeakOfTheSummedMemoryWithinTheStep)
{
    Trace trace = staircase({"0F0 0B0"}, {.origin = 10'000});
    trace.addMemory(Rank{0}, MemoryClass::Weights, 0, 100);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 0, 500); // before the step
    trace.addMemory(Rank{0}, MemoryClass::Activations, 9'000, 0);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 10'500, 30);
    trace.addMemory(Rank{0}, MemoryClass::Gradients, 11'000, 50); // at the same time as the next: they cancel
    trace.addMemory(Rank{0}, MemoryClass::Activations, 11'000, 0);
    trace.addMemory(Rank{0}, MemoryClass::Gradients, 12'000, 9'999); // when the step is over
    EXPECT_EQ(figuresOf(trace).ranks[0].peakMemory, 150);
}

TEST(StepFigures, LeavesPausesOutOfEveryFigure)
{
    Trace trace = staircase(kGPipe);
    const StepFigures before = figuresOf(trace);
    Trace paused;
    paused.info = trace.info;
    // the same run stopped between two columns for 7 us and, twice reported, for 3 us
    const auto later = [](TimeNs t) { return t + (t >= 6000 ? 7000 : 0) + (t >= 9000 ? 3000 : 0); };
    for (const Lane& lane : trace.lanes()) {
        const LaneId id = paused.addLane(lane.info());
        for (std::size_t i = 0; i < lane.size(); ++i) {
            Slice slice = lane.slice(i);
            slice.begin = later(slice.begin);
            slice.end = later(slice.end - 1) + 1;
            paused.append(id, slice);
        }
    }
    test::addDataEdges(paused, 0, kStep);
    paused.addPause({16'000, 19'000});
    paused.addPause({6000, 13'000});
    paused.addPause({17'000, 19'000});
    const StepFigures after = figuresOf(paused);
    EXPECT_EQ(after.makespan, before.makespan);
    EXPECT_EQ(after.maxSpan, before.maxSpan);
    EXPECT_EQ(after.bubbleMakespan, before.bubbleMakespan);
    for (std::size_t r = 0; r < 4; ++r) {
        EXPECT_EQ(after.ranks[r].busy, before.ranks[r].busy);
        EXPECT_EQ(after.ranks[r].idleByCause, before.ranks[r].idleByCause);
    }
    for (const Gap& gap : gapsOf(paused, kStep)) {
        EXPECT_TRUE(gap.span.end <= 6000 || gap.span.begin >= 13'000);
        EXPECT_TRUE(gap.span.end <= 16'000 || gap.span.begin >= 19'000);
    }
    expectTiled(paused, kStep);
}

TEST(StepFigures, CutsAPauseOutOfAnActionThatRanThroughIt)
{
    Trace trace = staircase({"0F0 - - 0B0"});
    trace.addPause({500, 2500});
    const StepFigures f = figuresOf(trace);
    EXPECT_EQ(f.makespan, 2000);
    EXPECT_EQ(f.ranks[0].busy, 2000);
    EXPECT_EQ(f.bubbleMakespan, 0.0);
}

TEST(StepFigures, KeepsStepsOfOneTraceApart)
{
    Trace trace = staircase(kGPipe);
    test::addStaircase(trace, k1F1B, {.origin = 20'000, .step = Step{3}});
    EXPECT_THAT(stepsOf(trace), ElementsAre(Step{0}, Step{3}));
    EXPECT_THAT(peaks(figuresOf(trace, Step{0})), ElementsAre(5, 5, 5, 5));
    EXPECT_THAT(peaks(figuresOf(trace, Step{3})), ElementsAre(4, 3, 2, 1));
    EXPECT_EQ(figuresOf(trace, Step{3}).span, (Interval{20'000, 36'000}));
}

TEST(StepFigures, NamesAStepThatHasNothing)
{
    const Expected<StepFigures> none = stepFigures(staircase(kGPipe), Step{7});
    ASSERT_FALSE(none.ok());
    EXPECT_THAT(none.error().message, testing::HasSubstr("step 7"));
    EXPECT_TRUE(gapsOf(staircase(kGPipe), Step{7}).empty());
    EXPECT_FALSE(stepFigures(Trace{}, kStep).ok());
}

TEST(StepFigures, CountsARankWithoutActionsAsIdleThroughout)
{
    Trace trace = staircase({"0F0 0F1"});
    trace.addLane({.rank = Rank{1}, .kind = LaneKind::Compute, .name = ""});
    const StepFigures f = figuresOf(trace);
    ASSERT_EQ(f.ranks.size(), 2u);
    EXPECT_EQ(idleOf(f.ranks[1], GapCause::Filling), 2000);
    EXPECT_EQ(f.bubbleMakespan, 0.5);
    EXPECT_EQ(f.steady.length(), 0);
}

TEST(StepFigures, DoesNotCountCommunicationAsBusy)
{
    const StepFigures f = figuresOf(staircase({"0RECV_F0 0F0 0B0 0ALL_REDUCE - 0OPTIMIZER"}));
    EXPECT_EQ(f.span, (Interval{1000, 6000})); // the receive was only posted early
    EXPECT_EQ(f.ranks[0].busy, 3000);
    EXPECT_EQ(idleOf(f.ranks[0], GapCause::Transfer), 2000);
}

TEST(StepFigures, CountsTimeSharedByTwoLanesOfARankOnce)
{
    Trace trace = staircase({"0F0 - 0B0"});
    const LaneId second = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 1, .name = ""});
    trace.append(second, {.begin = 1500, .end = 4000, .action = weightGrad(Stage{0}, MicroBatch{9})});
    EXPECT_EQ(figuresOf(trace).ranks[0].busy, 4000);
    expectTiled(trace, kStep);
}

TEST(GapCauses, SplitWaitingAtTheProducersEndAndAtTheArrival)
{
    Trace trace = staircase({"0F0 - - 0F1 -", ". . . . 1F0 . . . 1F1"}, {.latency = 1000});
    trace.info.label = TraceLabel::Measured;
    const std::vector<Gap> gaps = gapsOf(trace, kStep);
    const SliceRef producer{LaneId{0}, 1};
    const SliceRef consumer{LaneId{1}, 1};
    // rank 0 is done at 5; rank 1: its data is made by 5, there at 6, used at 8
    EXPECT_THAT(
        gaps, ElementsAre(Gap{.rank = Rank{0}, .span = {5000, 9000}, .cause = GapCause::Draining, .before = producer},
                          Gap{.rank = Rank{1}, .span = {0, 4000}, .cause = GapCause::Filling, .before = {LaneId{1}, 0}},
                          Gap{.rank = Rank{1},
                              .span = {5000, 6000},
                              .cause = GapCause::Transfer,
                              .stage = Stage{0},
                              .producer = producer,
                              .before = consumer},
                          Gap{.rank = Rank{1}, .span = {6000, 8000}, .cause = GapCause::HostOverhead, .before = consumer}));
}

TEST(GapCauses, NameTheStageThatWasWaitedFor)
{
    const std::vector<Gap> gaps = gapsOf(staircase(kGPipe), kStep);
    const auto wait = std::find_if(
        gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.rank == Rank{1} && gap.cause == GapCause::WaitForStage; });
    ASSERT_NE(wait, gaps.end());
    EXPECT_EQ(wait->span, (Interval{6000, 10'000}));
    EXPECT_EQ(wait->stage, Stage{2});
    EXPECT_EQ(wait->producer, (SliceRef{LaneId{2}, 5}));
    EXPECT_EQ(wait->before, (SliceRef{LaneId{1}, 5}));
}

TEST(GapCauses, FollowTheDataThatArrivedLast)
{
    Trace trace = staircase({"0F0 -", ". 1F0 - - . . . 1F1", "2F0"});
    trace.addEdge({.kind = EdgeKind::Data, .from = {LaneId{0}, 0}, .to = {LaneId{1}, 1}, .ready = 6000});
    trace.addEdge({.kind = EdgeKind::Data, .from = {LaneId{2}, 0}, .to = {LaneId{1}, 1}, .ready = 5000});
    const StepFigures f = figuresOf(trace);
    EXPECT_EQ(idleOf(f.ranks[1], GapCause::Transfer), 2000);
    EXPECT_EQ(idleOf(f.ranks[1], GapCause::Unexplained), 1000); // a simulation has no host that is late
}

TEST(GapCauses, KnowMemoryThatWasGivenBack)
{
    Trace trace = staircase({"0F0 . . . 0F1", ". 1F0 1B0"});
    trace.addEdge({.kind = EdgeKind::Memory, .from = {LaneId{1}, 1}, .to = {LaneId{0}, 1}, .ready = 3000});
    trace.info.label = TraceLabel::Emulated;
    const StepFigures f = figuresOf(trace);
    EXPECT_EQ(idleOf(f.ranks[0], GapCause::Memory), 2000);
    EXPECT_EQ(idleOf(f.ranks[0], GapCause::HostOverhead), 1000);
}

TEST(GapCauses, BlameTheHostOnlyWhereEdgesWouldHaveTold)
{
    const std::vector<std::string> rows{"0F0 . 0F1 . 0I1 . 0W1", ". 1F0 1F1 1I1"};
    Trace measured = staircase(rows);
    measured.info.label = TraceLabel::Measured;
    const RankFigures withEdges = figuresOf(measured).ranks[0];
    // 0F1 and 0W1 need only their own rank; 0I1 came with its edge
    EXPECT_EQ(idleOf(withEdges, GapCause::HostOverhead), 2000);
    EXPECT_EQ(idleOf(withEdges, GapCause::WaitForStage), 1000);
    EXPECT_EQ(idleOf(withEdges, GapCause::Unexplained), 0);

    Trace bare;
    bare.info = measured.info;
    for (const Lane& lane : measured.lanes()) {
        const LaneId id = bare.addLane(lane.info());
        for (std::size_t i = 0; i < lane.size(); ++i) bare.append(id, lane.slice(i));
    }
    EXPECT_EQ(idleOf(figuresOf(bare).ranks[0], GapCause::Unexplained), 3000);
}

TEST(GapCauses, SeparateWaitingForACollectiveFromItsTransfer)
{
    Trace trace = staircase({"0F0 0ALL_REDUCE - - 0OPTIMIZER", "1F0 - - . . 1OPTIMIZER"});
    trace.addEdge({.kind = EdgeKind::Data, .from = {LaneId{1}, 0}, .to = {LaneId{0}, 1}, .ready = 3000});
    const StepFigures f = figuresOf(trace);
    EXPECT_EQ(idleOf(f.ranks[0], GapCause::WaitForStage), 2000);
    EXPECT_EQ(idleOf(f.ranks[0], GapCause::Transfer), 1000);
}

TEST(GapCauses, TileEveryRankOfRandomTraces)
{
    std::mt19937 random(7);
    const auto upTo = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const ActionKind kinds[] = {ActionKind::Forward,    ActionKind::Backward,    ActionKind::InputGrad,
                                ActionKind::WeightGrad, ActionKind::RecvForward, ActionKind::AllReduce,
                                ActionKind::None,       ActionKind::Optimizer};
    for (int round = 0; round < 200; ++round) {
        Trace trace;
        trace.info.label = round % 2 == 0 ? TraceLabel::Measured : TraceLabel::Simulated;
        const int ranks = 1 + upTo(4);
        for (int r = 0; r < ranks; ++r) {
            trace.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = ""});
            trace.info.stageToRank.push_back(Rank{r});
        }
        for (std::size_t l = 0; l < trace.laneCount(); ++l) {
            TimeNs now = upTo(50);
            for (int i = upTo(30) + (l == 0 ? 1 : 0); i > 0; --i) {
                now += upTo(3) == 0 ? upTo(40) : 0;
                const TimeNs end = now + upTo(20);
                const ActionKind kind = i == 1 && l == 0 ? ActionKind::Forward : kinds[upTo(8)];
                trace.append(LaneId{l},
                             {.begin = now, .end = end, .action = makeAction(kind, Stage{upTo(4)}, MicroBatch{i})});
                now = end;
            }
        }
        for (std::size_t l = 0; l < trace.laneCount(); ++l)
            for (std::uint32_t i = 0; i < trace.lane(LaneId{l}).size(); ++i) {
                const LaneId from{upTo(ranks)};
                if (upTo(2) == 0 || trace.lane(from).empty()) continue;
                trace.addEdge({.kind = upTo(3) == 0 ? EdgeKind::Memory : EdgeKind::Data,
                               .from = {from, static_cast<std::uint32_t>(upTo(static_cast<int>(trace.lane(from).size())))},
                               .to = {LaneId{l}, i},
                               .ready = upTo(600)});
            }
        for (int i = upTo(4); i > 0; --i) {
            const TimeNs begin = upTo(400);
            trace.addPause({begin, begin + upTo(60)});
        }
        expectTiled(trace, kStep);
    }
}

TEST(GapCauses, HaveTextsAndKeysOfTheirOwn)
{
    std::map<std::string_view, int> seen;
    for (std::size_t i = 0; i < kGapCauseCount; ++i) {
        EXPECT_FALSE(gapCauseText(static_cast<GapCause>(i)).empty());
        ++seen[gapCauseKey(static_cast<GapCause>(i))];
    }
    EXPECT_EQ(seen.size(), kGapCauseCount);
    EXPECT_EQ(gapCauseKey(GapCause::WaitForStage), "waiting");
}

} // namespace
} // namespace stagecraft::traces
