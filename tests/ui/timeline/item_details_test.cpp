// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/item_details.h"

#include "tests/ui/support/traces.h"
#include "tests/ui/window/test_plans.h"
#include "ui/window/simulation_controller.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

class ItemDetailsTest : public testing::Test {
protected:
    ItemDetailsTest()
    {
        engine::Plan plan = planOf(pipelineOf("1f1b", 2, 1, 2));
        plan.costs.latency = 100'000;
        simulation = simulatePlan(plan).value();
        scene.setSources({TraceSource{simulation.trace, {}, false}});
    }
    static std::string valueOf(const ItemDetails& details, const char* name)
    {
        const auto line = std::find_if(details.lines.begin(), details.lines.end(), [&](const auto& l) { return l.first == name; });
        return line == details.lines.end() ? "(none)" : line->second.toStdString();
    }
    Simulation simulation;
    TimelineScene scene;
};

TEST_F(ItemDetailsTest, TellABlocksTimesAndWhatItNeeds)
{
    const traces::LaneId lane = *simulation.trace->findLane(traces::Rank{1}, traces::LaneKind::Compute);
    TimelineItem item;
    item.kind = TimelineItem::Kind::Slice;
    item.slice = {lane, 0}; // 1F0, after 0F0 and its transfer
    const ItemDetails details = detailsOf(scene, item);
    EXPECT_EQ(details.title, "1F0, forward");
    EXPECT_EQ(valueOf(details, "Stage"), "1");
    EXPECT_EQ(valueOf(details, "Rank"), "1");
    EXPECT_EQ(valueOf(details, "Micro-batch"), "0");
    EXPECT_EQ(valueOf(details, "Duration"), "1 ms");
    EXPECT_EQ(valueOf(details, "Begins"), "1.1 ms into the step");
    EXPECT_EQ(valueOf(details, "Needs"), "0F0 on rank 0, on the way for 100 µs");
}

// 1F1B of two micro-batches on two ranks with hops of 100 µs: 0F1 is done at 2 ms and there at 2.1, 1F1 waits for 1B0 until 4.1.
TEST_F(ItemDetailsTest, TellHowFarABlockMayBeDelayed)
{
    const traces::LaneId lane = *simulation.trace->findLane(traces::Rank{0}, traces::LaneKind::Compute);
    TimelineItem item;
    item.kind = TimelineItem::Kind::Slice;
    item.slice = {lane, 0};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Slack"), "none: a delay makes the step longer");
    item.slice = {lane, 1};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Slack"), "2 ms later, and the step is no longer");
}

TEST_F(ItemDetailsTest, TellTheCauseOfABubble)
{
    const auto gaps = scene.gaps(0, traces::Step{0}).of(traces::Rank{1});
    ASSERT_FALSE(gaps.empty());
    TimelineItem item;
    item.kind = TimelineItem::Kind::Gap;
    item.gap = gaps.front();
    const ItemDetails details = detailsOf(scene, item);
    EXPECT_EQ(details.title, "Bubble: filling");
    EXPECT_EQ(valueOf(details, "Duration"), "1.1 ms");
    EXPECT_EQ(valueOf(details, "Until"), "1F0 on rank 1");
}

TEST_F(ItemDetailsTest, TellWhichHandOffAKernelOfNcclIsAndHowLongItWaited)
{
    const support::Exchanging made = support::exchangingRanks();
    scene.setSources({TraceSource{made.trace, {}, false}});
    TimelineItem item;
    item.kind = TimelineItem::Kind::Slice;
    item.slice = {made.kernels[0], 0};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Hand-off"), "0SEND_F1");
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Waiting"), "2 ms for rank 1, moving 1 ms");
    item.slice = {made.kernels[1], 0};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Hand-off"), "1RECV_F1");
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Waiting"), "0 ns for rank 0, moving 1 ms");
    item.slice = {made.kernels[0], 1};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Hand-off"), "not known: the kernels and the exchanges of its step do not agree");
}

TEST_F(ItemDetailsTest, TellWhichSumAKernelOfNcclIsAndHowLongItWaited)
{
    const support::Exchanging made = support::summingRanks();
    scene.setSources({TraceSource{made.trace, {}, false}});
    TimelineItem item;
    item.kind = TimelineItem::Kind::Slice;
    item.slice = {made.kernels[0], 0};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Sum"), "0ALL_REDUCE");
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Waiting"), "2 ms for the last, rank 1, moving 1 ms");
    item.slice = {made.kernels[1], 0};
    EXPECT_EQ(valueOf(detailsOf(scene, item), "Waiting"), "0 ns for the last, rank 0, moving 1 ms");
}

TEST_F(ItemDetailsTest, SayNothingOfWhatIsGone)
{
    TimelineItem item;
    EXPECT_TRUE(detailsOf(scene, item).title.isEmpty());
    item.kind = TimelineItem::Kind::Slice;
    item.slice = {traces::LaneId{99}, 0};
    EXPECT_TRUE(detailsOf(scene, item).title.isEmpty());
    item.source = 5;
    EXPECT_TRUE(detailsOf(scene, item).title.isEmpty());
}

} // namespace
} // namespace stagecraft::ui
