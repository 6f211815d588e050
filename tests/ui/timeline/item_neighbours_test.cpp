// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/item_neighbours.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using namespace traces;
using support::kMs;
using support::twoRanks;

// "F0 F1 ~waiting~ B0": the blocks of a walk, bubbles by their cause.
QStringList walk(const TimelineScene& scene, TimelineItem item, Direction direction)
{
    QStringList all;
    while (!item.none()) {
        const bool gap = item.kind == TimelineItem::Kind::Gap;
        all << (gap ? "~" + QString::fromUtf8(gapCauseKey(item.gap.cause).data()) : QString::fromStdString(scene.trace(item.source).sliceName(item.slice)));
        item = alongLane(scene, item, direction);
    }
    return all;
}

TimelineItem block(std::uint32_t lane, std::uint32_t index)
{
    return {.kind = TimelineItem::Kind::Slice, .slice = {LaneId{lane}, index}};
}

TEST(AlongLane, PassesBlocksAndBubblesInTheOrderOfTime)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    EXPECT_EQ(walk(scene, block(0, 0), Direction::On).join(' '), "0F0 0F1 ~waiting 0B0 ~waiting 0B1");
    EXPECT_EQ(walk(scene, block(0, 3), Direction::Back).join(' '), "0B1 ~waiting 0B0 ~waiting 0F1 0F0");
    EXPECT_EQ(walk(scene, block(1, 3), Direction::On).join(' '), "1B1 ~draining");
    EXPECT_EQ(walk(scene, block(1, 0), Direction::Back).join(' '), "1F0 ~filling");
    EXPECT_EQ(walk(scene, block(2, 0), Direction::On).join(' '), "0SEND_F0"); // a transfer lane has no bubbles
}

TEST(AlongLane, GoesOnIntoTheNextStep)
{
    TimelineScene scene;
    scene.setSources({{twoRanks({.unit = {kMs, kMs}})}});
    EXPECT_EQ(walk(scene, block(1, 3), Direction::On).mid(0, 4).join(' '), "1B1 ~draining ~filling 1F0");
}

TEST(AcrossLanes, FindsWhatLiesAtTheSameTime)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    const LaneLayout layout(scene, {});
    const auto down = [&](TimelineItem item, double ms) { return acrossLanes(scene, layout, item, static_cast<TimeNs>(ms * kMs), Direction::On); };
    // rank 0, its transfers, rank 1
    const TimelineItem transfer = down(block(0, 1), 1.2);
    EXPECT_EQ(transfer.slice, (SliceRef{LaneId{2}, 0}));
    EXPECT_EQ(down(transfer, 1.2).slice, (SliceRef{LaneId{1}, 0}));
    EXPECT_EQ(down(transfer, 0.5).kind, TimelineItem::Kind::Gap); // filling
    EXPECT_TRUE(down(block(1, 0), 1.2).none());
    const TimelineItem up = acrossLanes(scene, layout, block(1, 2), 4 * kMs + 1, Direction::Back);
    EXPECT_EQ(up.slice, (SliceRef{LaneId{2}, 0})); // the nearest, where nothing is at that time
}

} // namespace
} // namespace stagecraft::ui
