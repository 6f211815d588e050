// SPDX-License-Identifier: GPL-3.0-or-later
//
// The keys of the timeline.
#include "tests/ui/timeline/timeline_widget_fixture.h"

namespace stagecraft::ui {
namespace {

using support::kMs;
using traces::Interval;
using traces::LaneId;
using traces::SliceRef;
using traces::TimeNs;

TEST_F(TimelineWidgetTest, ZoomsAndPansByKeys)
{
    const double length = range().length;
    key(Qt::Key_W);
    EXPECT_NEAR(range().length, length * 0.7, 1);
    const TimeNs first = range().first();
    key(Qt::Key_D);
    EXPECT_GT(range().first(), first);
    key(Qt::Key_A);
    EXPECT_NEAR(static_cast<double>(range().first()), static_cast<double>(first), 2);
    key(Qt::Key_S);
    EXPECT_TRUE(scene_.axis().showsAll());
}

TEST_F(TimelineWidgetTest, FitsTheSelectionAndThenAll)
{
    click(at(5, LaneId{0}));
    key(Qt::Key_F);
    EXPECT_NEAR(static_cast<double>(range().first()), 4e6, 5e4);
    key(Qt::Key_F);
    EXPECT_TRUE(scene_.axis().showsAll());
    key(Qt::Key_F);
    EXPECT_FALSE(scene_.axis().showsAll());
    key(Qt::Key_0);
    EXPECT_TRUE(scene_.axis().showsAll());
    key(Qt::Key_Backspace);
    EXPECT_FALSE(scene_.axis().showsAll());
    key(Qt::Key_Backspace, Qt::ShiftModifier);
    EXPECT_TRUE(scene_.axis().showsAll());
}

TEST_F(TimelineWidgetTest, StepsThroughALane)
{
    key(Qt::Key_Right); // nothing selected: the first block in sight
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 0}));
    key(Qt::Key_Period);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 1}));
    key(Qt::Key_Comma);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 0}));
    key(Qt::Key_Left);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 0}));
}

TEST_F(TimelineWidgetTest, StepsThroughBubbles)
{
    click(at(1.5, LaneId{0}));
    key(Qt::Key_Right);
    EXPECT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    key(Qt::Key_Right);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    key(Qt::Key_Left);
    EXPECT_EQ(widget_.selection().gap.span, (Interval{2 * kMs, 4 * kMs}));
    key(Qt::Key_Left);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 1}));
}

TEST_F(TimelineWidgetTest, GoesFromLaneToLane)
{
    click(at(1.3, LaneId{0}));
    key(Qt::Key_Down);
    EXPECT_EQ(selected(), (SliceRef{LaneId{2}, 0}));
    key(Qt::Key_Down);
    EXPECT_EQ(selected(), (SliceRef{LaneId{1}, 0}));
    key(Qt::Key_Down); // the last one
    EXPECT_EQ(selected(), (SliceRef{LaneId{1}, 0}));
    key(Qt::Key_Up);
    EXPECT_EQ(selected(), (SliceRef{LaneId{2}, 0}));
}

TEST_F(TimelineWidgetTest, MeasuresAndZoomsByKeys)
{
    click(at(0.5, LaneId{0}));
    key(Qt::Key_Right, Qt::ShiftModifier);
    EXPECT_EQ(widget_.measurement(), (Interval{0, 2 * kMs}));
    key(Qt::Key_Right, Qt::ShiftModifier);
    EXPECT_EQ(widget_.measurement(), (Interval{0, 4 * kMs}));
    key(Qt::Key_Z);
    EXPECT_EQ(range().first(), 0);
    EXPECT_EQ(range().last(), 4 * kMs);
}

TEST_F(TimelineWidgetTest, BringsASelectedBlockIntoView)
{
    scene_.axis().setRange({0, kMs});
    click(at(0.5, LaneId{0}));
    for (int i = 0; i < 5; ++i) key(Qt::Key_Right);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 3})); // at 7 ms
    EXPECT_LE(range().first(), 7 * kMs);
    EXPECT_GE(range().last(), 7 * kMs + 1);
}

TEST_F(TimelineWidgetTest, FollowsHandOffs)
{
    click(at(0.5, LaneId{0})); // F0 on rank 0
    key(Qt::Key_BracketRight);
    EXPECT_EQ(selected(), (SliceRef{LaneId{1}, 0}));
    key(Qt::Key_BracketRight);
    EXPECT_EQ(selected(), (SliceRef{LaneId{1}, 1}));
    key(Qt::Key_BracketRight);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    key(Qt::Key_BracketRight); // B0 of the first stage is the end
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    for (int i = 0; i < 5; ++i) key(Qt::Key_BracketLeft);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 0}));
}

TEST_F(TimelineWidgetTest, MarksTheSelection)
{
    click(at(5, LaneId{0}));
    key(Qt::Key_M);
    EXPECT_EQ(widget_.measurement(), (Interval{4 * kMs, 6 * kMs}));
    key(Qt::Key_M);
    EXPECT_FALSE(widget_.measurement());
}

TEST_F(TimelineWidgetTest, ClearsStepByStepWithEscape)
{
    click(at(5, LaneId{0}));
    key(Qt::Key_M);
    key(Qt::Key_Escape);
    EXPECT_FALSE(widget_.measurement());
    EXPECT_FALSE(widget_.selection().none());
    key(Qt::Key_Escape);
    EXPECT_TRUE(widget_.selection().none());
}

TEST_F(TimelineWidgetTest, GoesToStartAndEnd)
{
    scene_.axis().setRange({4 * kMs, 5 * kMs});
    key(Qt::Key_End);
    EXPECT_NEAR(static_cast<double>(range().last()), 9.015e6, 1e3);
    key(Qt::Key_Home);
    EXPECT_NEAR(static_cast<double>(range().first()), -0.015e6, 1e3);
}

TEST_F(TimelineWidgetTest, FoldsByKey)
{
    const auto folded = [&] { return widget_.laneLayout().rowOf(0, LaneId{2}) == nullptr; };
    key(Qt::Key_C);
    EXPECT_FALSE(folded()); // of no rank
    click(at(5, LaneId{0}));
    key(Qt::Key_C);
    EXPECT_TRUE(folded());
    key(Qt::Key_C);
    EXPECT_FALSE(folded());
    key(Qt::Key_C, Qt::ShiftModifier);
    EXPECT_TRUE(folded());
    key(Qt::Key_C, Qt::ShiftModifier);
    EXPECT_FALSE(folded());
}

} // namespace
} // namespace stagecraft::ui
