// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/critical_path.h"

#include "tests/traces/staircase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;

constexpr Step kStep{0};

CriticalPath pathOf(const Trace& trace, Step step = kStep)
{
    Expected<CriticalPath> path = criticalPath(trace, step);
    EXPECT_TRUE(path.ok());
    return path.value();
}

// "0F0", "0F0>1F0" for a transfer, "..0F0" for a wait before it; with its length where that is not 1000.
std::vector<std::string> texts(const Trace& trace, const CriticalPath& path)
{
    std::vector<std::string> all;
    for (const PathLink& link : path.links) {
        std::string text = link.kind == PathKind::Wait ? ".." + trace.sliceName(link.to) : trace.sliceName(link.from);
        if (link.kind == PathKind::Transfer && link.from != link.to) text += ">" + trace.sliceName(link.to);
        if (link.length != 1000) text += "=" + std::to_string(link.length);
        all.push_back(text);
    }
    return all;
}

void expectChain(const CriticalPath& path, TimeNs makespan)
{
    TimeNs at = path.span.begin;
    TimeNs sum = 0;
    for (const PathLink& link : path.links) {
        EXPECT_EQ(link.span.begin, at);
        EXPECT_LT(link.span.begin, link.span.end);
        at = link.span.end;
        sum += link.length;
    }
    EXPECT_EQ(at, path.span.end);
    EXPECT_EQ(sum, makespan);
    EXPECT_EQ(path.total.sum(), makespan);
}

TEST(CriticalPath, GoesThroughTheStageThatIsSlow)
{
    // the second stage takes two units for all that the first does in one
    const Trace trace = staircase({"0F0 0F1 .   .   .   0B0 .   .   0B1", //
                                   ".   1F0 -   1B0 -   1F1 1B1 -  "});
    const CriticalPath path = pathOf(trace);
    expectChain(path, 9000);
    EXPECT_THAT(texts(trace, path), ElementsAre("0F0", "1F0=2000", "1B0=2000", "1F1", "1B1=2000", "0B1"));
    EXPECT_EQ(path.total, (PathTimes{9000, 0, 0}));
    EXPECT_THAT(path.ranks, ElementsAre(PathTimes{2000, 0, 0}, PathTimes{7000, 0, 0}));
    EXPECT_EQ(path.ranks, path.stages) << "a stage per rank";
}

TEST(CriticalPath, CountsTransfersForTheRankThatSends)
{
    Trace trace;
    const LaneId first = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    const LaneId second = trace.addLane({.rank = Rank{1}, .name = "rank 1"});
    trace.append(first, {.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(second, {.begin = 1300, .end = 2300, .action = forward(Stage{1}, MicroBatch{0})});
    trace.append(second, {.begin = 2300, .end = 3300, .action = backward(Stage{1}, MicroBatch{0})});
    trace.append(first, {.begin = 3600, .end = 4600, .action = backward(Stage{0}, MicroBatch{0})});
    trace.addEdge({EdgeKind::Data, {second, 1}, {first, 1}, 3600});
    trace.addEdge({EdgeKind::Data, {first, 0}, {second, 0}, 1300});
    const CriticalPath path = pathOf(trace);
    expectChain(path, 4600);
    EXPECT_THAT(texts(trace, path), ElementsAre("0F0", "0F0>1F0=300", "1F0", "1B0", "1B0>0B0=300", "0B0"));
    EXPECT_EQ(path.total, (PathTimes{4000, 600, 0}));
    EXPECT_THAT(path.ranks, ElementsAre(PathTimes{2000, 300, 0}, PathTimes{2000, 300, 0}));
}

TEST(CriticalPath, ShowsWhatNoEdgeExplainsAsWaiting)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    trace.append(lane, {.begin = 100, .end = 1100, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(lane, {.begin = 1150, .end = 2150, .action = backward(Stage{0}, MicroBatch{0})}); // the host was late
    const LaneId late = trace.addLane({.rank = Rank{1}, .name = "rank 1"});
    trace.append(late, {.begin = 500, .end = 2500, .action = forward(Stage{1}, MicroBatch{1})}); // and this rank began late
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("..1F1=400", "1F1=2000"));
    expectChain(pathOf(trace), 2400);

    trace.append(lane, {.begin = 2150, .end = 3150, .action = weightGrad(Stage{0}, MicroBatch{0})});
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("0F0", "..0B0=50", "0B0", "0W0"));
    EXPECT_EQ(pathOf(trace).total, (PathTimes{3000, 0, 50}));
}

TEST(CriticalPath, NamesMemoryAndTheOptimizerAsReasons)
{
    Trace trace;
    const LaneId first = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    const LaneId copies = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Copy, .name = "copies"});
    trace.append(first, {.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(copies, {.begin = 1000, .end = 4000, .action = makeAction(ActionKind::Offload, Stage{0}, MicroBatch{0})});
    trace.append(first, {.begin = 4000, .end = 5000, .action = forward(Stage{0}, MicroBatch{1})}); // waits for room
    trace.addEdge({EdgeKind::Memory, {copies, 0}, {first, 1}, 4000});
    trace.addEdge({EdgeKind::Data, {first, 0}, {copies, 0}, 1000});
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("0F0", "0OFFLOAD0=3000", "0F1"));
    EXPECT_EQ(pathOf(trace).total, (PathTimes{2000, 3000, 0}));

    trace.append(first, {.begin = 5500, .end = 6000, .action = forward(Stage{0}, MicroBatch{2})});
    trace.addEdge({EdgeKind::Flush, {first, 1}, {first, 2}, 5400});
    const CriticalPath path = pathOf(trace);
    expectChain(path, 6000);
    ASSERT_EQ(path.links.size(), 6U);
    EXPECT_EQ(path.links[3].kind, PathKind::Wait);
    EXPECT_EQ(path.links[3].length, 400);
    EXPECT_EQ(path.links[3].edge, EdgeKind::Flush);
    EXPECT_EQ(path.links[4].edge, std::nullopt) << "the next step was allowed, and did not begin";
}

TEST(CriticalPath, LooksIntoAReceiptThatBlocksItsRank)
{
    // rank 1 stands at the receipt from the beginning; what it receives is made meanwhile
    Trace trace;
    const LaneId first = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    const LaneId second = trace.addLane({.rank = Rank{1}, .name = "rank 1"});
    trace.append(first, {.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(second, {.begin = 0, .end = 1200, .action = makeAction(ActionKind::RecvForward, Stage{1}, MicroBatch{0})});
    trace.append(second, {.begin = 1200, .end = 2200, .action = forward(Stage{1}, MicroBatch{0})});
    trace.addEdge({EdgeKind::Data, {first, 0}, {second, 0}, 1200});
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("0F0", "1RECV_F0=200", "1F0"));
}

TEST(CriticalPath, LeavesPausesOutAndStaysWithinItsStep)
{
    Trace trace = staircase({"0F0 0B0 0OPTIMIZER"});
    test::addStaircase(trace, {"0F0 0B0"}, {.origin = 4000, .step = Step{1}});
    trace.addPause({500, 1500});
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("0F0=500", "0B0=500", "0OPTIMIZER"));
    expectChain(pathOf(trace), 2000);
    EXPECT_THAT(texts(trace, pathOf(trace, Step{1})), ElementsAre("0F0", "0B0"));
    EXPECT_FALSE(criticalPath(trace, Step{2}).ok());
}

// A rank that is still at the step before when the next begins elsewhere (no barrier between steps).
TEST(CriticalPath, GoesOnInTheStepBeforeWhereStepsOverlap)
{
    Trace trace;
    const LaneId first = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    const LaneId second = trace.addLane({.rank = Rank{1}, .name = "rank 1"});
    trace.append(first, {.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0}), .step = Step{1}});
    trace.append(second, {.begin = -1000, .end = 2000, .action = backward(Stage{1}, MicroBatch{0}), .step = Step{0}});
    trace.append(second, {.begin = 2000, .end = 3000, .action = forward(Stage{1}, MicroBatch{0}), .step = Step{1}});
    const CriticalPath path = pathOf(trace, Step{1});
    expectChain(path, 3000);
    EXPECT_THAT(texts(trace, path), ElementsAre("1B0=2000", "1F0"));
}

// Clocks of two hosts, or a damaged file: a cause cannot come after its effect, nor a chain lead in a circle.
TEST(CriticalPath, BelievesNoEdgeAgainstTheClock)
{
    Trace trace = staircase({"0F0 .", ". 1F0"});
    trace.addEdge({EdgeKind::Data, {LaneId{1}, 0}, {LaneId{0}, 0}, 500});
    EXPECT_THAT(texts(trace, pathOf(trace)), ElementsAre("0F0", "1F0"));

    Trace circle;
    const LaneId lane = circle.addLane({.rank = Rank{0}, .name = "rank 0"});
    circle.append(lane, {.begin = 0, .end = 10, .action = forward(Stage{0}, MicroBatch{0})});
    circle.append(lane, {.begin = 500, .end = 500, .action = forward(Stage{0}, MicroBatch{1})});
    circle.append(lane, {.begin = 500, .end = 600, .action = forward(Stage{0}, MicroBatch{2})});
    circle.addEdge({EdgeKind::Data, {lane, 1}, {lane, 1}, 500});
    expectChain(pathOf(circle), 600);
}

} // namespace
} // namespace stagecraft::traces
