// SPDX-License-Identifier: GPL-3.0-or-later
//
// The mouse over the timeline: wheel, drag, box, click, hover.
#include "tests/ui/timeline/timeline_widget_fixture.h"

#include <QScrollBar>
#include <QSignalSpy>

namespace stagecraft::ui {
namespace {

using support::kMs;
using traces::LaneId;
using traces::SliceRef;
using traces::TimeNs;

TEST_F(TimelineWidgetTest, ZoomsAtTheCursor)
{
    const QPointF pos = at(5, LaneId{0});
    const TimeNs under = widget_.mapping().time(pos.x());
    wheel(pos, {0, 120});
    EXPECT_NEAR(widget_.mapping().x(under), pos.x(), 1);
    const double closer = range().length;
    EXPECT_LT(closer, 9.0 * kMs);
    wheel(pos, {0, -120});
    EXPECT_GT(range().length, closer);
}

TEST_F(TimelineWidgetTest, PansSidewaysWithAHorizontalWheel)
{
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    wheel(at(3, LaneId{0}), {-120, 0});
    EXPECT_GT(range().first(), 2 * kMs);
    EXPECT_DOUBLE_EQ(range().length, 2.0 * kMs);
}

TEST_F(TimelineWidgetTest, ScrollsLanesWithShiftAndWheel)
{
    widget_.resize(600, static_cast<int>(lanesTop()) + 40);
    const TimeRange before = range();
    const auto* bar = widget_.findChild<QScrollBar*>();
    ASSERT_GT(bar->maximum(), 0);
    wheel({300, lanesTop() + 10}, {0, -120}, Qt::ShiftModifier);
    EXPECT_GT(bar->value(), 0);
    EXPECT_EQ(range(), before);
}

TEST_F(TimelineWidgetTest, PansWhenDragged)
{
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    const QPointF from = at(3, LaneId{0});
    const TimeNs held = widget_.mapping().time(from.x());
    drag(from, from + QPointF(-100, 0));
    EXPECT_NEAR(widget_.mapping().x(held), from.x() - 100, 1.5);
    EXPECT_TRUE(widget_.selection().none()); // a drag is no click
}

TEST_F(TimelineWidgetTest, ZoomsToABox)
{
    for (const auto& [button, keys] : {std::pair{Qt::RightButton, Qt::NoModifier}, std::pair{Qt::LeftButton, Qt::ControlModifier}}) {
        scene_.axis().fitAll();
        drag(at(3, LaneId{0}), at(6, LaneId{1}), button, keys);
        EXPECT_NEAR(static_cast<double>(range().first()), 3e6, 2e4);
        EXPECT_NEAR(static_cast<double>(range().last()), 6e6, 2e4);
    }
}

TEST_F(TimelineWidgetTest, MeasuresASpan)
{
    QSignalSpy measured(&widget_, &TimelineWidget::measurementChanged);
    drag(at(6, LaneId{0}), at(2, LaneId{0}), Qt::LeftButton, Qt::ShiftModifier);
    ASSERT_TRUE(widget_.measurement());
    EXPECT_NEAR(static_cast<double>(widget_.measurement()->length()), 4e6, 2e4);
    EXPECT_GT(measured.count(), 0);
    EXPECT_TRUE(scene_.axis().showsAll());
    key(Qt::Key_Escape);
    EXPECT_FALSE(widget_.measurement());
}

TEST_F(TimelineWidgetTest, SelectsWhatIsClicked)
{
    QSignalSpy changed(&widget_, &TimelineWidget::selectionChanged);
    click(at(5, LaneId{0}));
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    click(at(3, LaneId{0}));
    EXPECT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    EXPECT_EQ(widget_.selection().gap.cause, traces::GapCause::WaitForStage);
    click({at(3, LaneId{0}).x(), 390});
    EXPECT_TRUE(widget_.selection().none());
    EXPECT_EQ(changed.count(), 3);
}

TEST_F(TimelineWidgetTest, TellsWhatIsUnderTheMouse)
{
    QSignalSpy time(&widget_, &TimelineWidget::hoverTimeChanged);
    send(QEvent::MouseMove, at(5, LaneId{0}), Qt::NoButton, Qt::NoButton);
    EXPECT_EQ(widget_.hovered().slice, (SliceRef{LaneId{0}, 2}));
    ASSERT_EQ(time.count(), 1);
    EXPECT_NEAR(static_cast<double>(*time[0][0].value<std::optional<TimeNs>>()), 5e6, 2e4);
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(&widget_, &leave);
    EXPECT_TRUE(widget_.hovered().none());
    EXPECT_FALSE(time.last()[0].value<std::optional<TimeNs>>());
}

TEST_F(TimelineWidgetTest, FitsTheBlockThatIsDoubleClicked)
{
    QTest::mouseDClick(&widget_, Qt::LeftButton, {}, at(5, LaneId{0}).toPoint());
    EXPECT_NEAR(static_cast<double>(range().first()), 4e6 - 3e4, 1e3);
    EXPECT_NEAR(static_cast<double>(range().last()), 6e6 + 3e4, 1e3);
}

TEST_F(TimelineWidgetTest, FoldsARankByItsHeader)
{
    const QPointF header(30, at(0, LaneId{0}).y());
    click(header);
    EXPECT_EQ(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    click(header);
    EXPECT_NE(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
}

TEST_F(TimelineWidgetTest, LeavesTheLanesAloneWhenHovering)
{
    widget_.grab();
    send(QEvent::MouseMove, at(5, LaneId{0}), Qt::NoButton, Qt::NoButton);
    EXPECT_TRUE(widget_.pictureIsCurrent()); // only the layer over it was painted
    scene_.axis().zoom(0.5, 0);
    EXPECT_FALSE(widget_.pictureIsCurrent());
}

} // namespace
} // namespace stagecraft::ui
