// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/item_identity.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using namespace traces;
using support::kMs;
using support::twoRanks;

TimelineItem block(int source, std::uint32_t lane, std::uint32_t index)
{
    return {.kind = TimelineItem::Kind::Slice, .source = source, .slice = {LaneId{lane}, index}};
}

TEST(ItemIdentity, FindsABlockWhenItsSourceTakesAnotherPlace)
{
    const auto measured = twoRanks({.label = TraceLabel::Measured});
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {measured}});
    const ItemIdentity chosen(scene, block(1, 0, 2));
    scene.setSources({{measured}});
    const TimelineItem again = chosen.find(scene);
    EXPECT_EQ(again.source, 0);
    EXPECT_EQ(again.slice, (SliceRef{LaneId{0}, 2}));
    scene.setSources({{twoRanks()}}); // the simulation alone has a block at that place, but it is another
    EXPECT_TRUE(chosen.find(scene).none());
}

TEST(ItemIdentity, FindsTheSameActionInAnotherSimulation)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    const ItemIdentity chosen(scene, block(0, 0, 2)); // 0B0
    // gpipe's order on rank 0, one block more in front
    const auto other = std::make_shared<Trace>();
    const LaneId lane = other->addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    for (int i = 0; i < 4; ++i)
        other->append(lane, {.begin = i * kMs, .end = (i + 1) * kMs, .action = i < 3 ? forward(Stage{0}, MicroBatch{i}) : backward(Stage{0}, MicroBatch{0}), .step = {}, .text = {}});
    scene.setSources({{other}});
    EXPECT_EQ(chosen.find(scene).slice, (SliceRef{lane, 3}));
}

TEST(ItemIdentity, FindsABubbleAgainWithItsNewTimes)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    const Gap gap = scene.gaps(0, Step{0}).of(Rank{0}).front(); // waits for stage 1, 2-4
    const ItemIdentity chosen(scene, {.kind = TimelineItem::Kind::Gap, .gap = gap});
    scene.setSources({{twoRanks({.unit = {3 * kMs}})}});
    const TimelineItem again = chosen.find(scene);
    ASSERT_EQ(again.kind, TimelineItem::Kind::Gap);
    EXPECT_EQ(again.gap.span, (Interval{6 * kMs, 12 * kMs}));
    scene.setSources({});
    EXPECT_TRUE(chosen.find(scene).none());
}

TEST(ItemIdentity, LeavesNothingWhereTheActionIsGone)
{
    TimelineScene scene;
    scene.setSources({{twoRanks({.unit = {kMs, kMs}})}});
    const ItemIdentity chosen(scene, block(0, 0, 6)); // 0B0 of step 1
    scene.setSources({{twoRanks()}});
    EXPECT_TRUE(chosen.find(scene).none());
}

} // namespace
} // namespace stagecraft::ui
