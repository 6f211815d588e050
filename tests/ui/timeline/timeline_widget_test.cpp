// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/ruler_painter.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QScrollBar>
#include <QSignalSpy>
#include <QWheelEvent>
#include <QtTest>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::Interval;
using traces::LaneId;
using traces::SliceRef;
using traces::TimeNs;

class Widget : public ::testing::Test {
protected:
    Widget() : widget_(scene_)
    {
        scene_.setSources({{twoRanks()}});
        widget_.resize(1100, 400);
        widget_.show();
        QApplication::processEvents();
    }

    QPointF at(double ms, LaneId lane) const
    {
        const Row* row = widget_.laneLayout().rowOf(0, lane);
        return {widget_.mapping().x(static_cast<TimeNs>(ms * kMs)), lanesTop() + row->y + row->height / 2};
    }
    double lanesTop() const
    {
        const TimelinePainter painter(widget_.theme(), widget_.font());
        return painter.rulerHeight();
    }
    void click(QPointF pos) { QTest::mouseClick(&widget_, Qt::LeftButton, {}, pos.toPoint()); }
    void drag(QPointF from, QPointF to, Qt::MouseButton button = Qt::LeftButton, Qt::KeyboardModifiers keys = {})
    {
        send(QEvent::MouseButtonPress, from, button, button, keys);
        for (int i = 1; i <= 5; ++i) send(QEvent::MouseMove, from + (to - from) * i / 5.0, Qt::NoButton, button, keys);
        send(QEvent::MouseButtonRelease, to, button, Qt::NoButton, keys);
    }
    void send(QEvent::Type type, QPointF pos, Qt::MouseButton button, Qt::MouseButtons held, Qt::KeyboardModifiers keys = {})
    {
        QMouseEvent event(type, pos, widget_.mapToGlobal(pos), button, held, keys);
        QApplication::sendEvent(&widget_, &event);
    }
    void wheel(QPointF pos, QPoint turn, Qt::KeyboardModifiers keys = {})
    {
        QWheelEvent event(pos, widget_.mapToGlobal(pos), {}, turn, Qt::NoButton, keys, Qt::NoScrollPhase, false);
        QApplication::sendEvent(&widget_, &event);
    }
    void key(Qt::Key key, Qt::KeyboardModifiers keys = {}) { QTest::keyClick(&widget_, key, keys); }
    SliceRef selected() const
    {
        EXPECT_EQ(widget_.selection().kind, TimelineItem::Kind::Slice);
        return widget_.selection().slice;
    }
    TimeRange range() const { return scene_.axis().range(); }

    TimelineScene scene_;
    TimelineWidget widget_;
};

TEST_F(Widget, ZoomsAtTheCursor)
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

TEST_F(Widget, PansSidewaysWithAHorizontalWheel)
{
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    wheel(at(3, LaneId{0}), {-120, 0});
    EXPECT_GT(range().first(), 2 * kMs);
    EXPECT_DOUBLE_EQ(range().length, 2.0 * kMs);
}

TEST_F(Widget, ScrollsLanesWithShiftAndWheel)
{
    widget_.resize(600, static_cast<int>(lanesTop()) + 40);
    const TimeRange before = range();
    const auto* bar = widget_.findChild<QScrollBar*>();
    ASSERT_GT(bar->maximum(), 0);
    wheel({300, lanesTop() + 10}, {0, -120}, Qt::ShiftModifier);
    EXPECT_GT(bar->value(), 0);
    EXPECT_EQ(range(), before);
}

TEST_F(Widget, PansWhenDragged)
{
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    const QPointF from = at(3, LaneId{0});
    const TimeNs held = widget_.mapping().time(from.x());
    drag(from, from + QPointF(-100, 0));
    EXPECT_NEAR(widget_.mapping().x(held), from.x() - 100, 1.5);
    EXPECT_TRUE(widget_.selection().none()); // a drag is no click
}

TEST_F(Widget, ZoomsToABox)
{
    for (const auto& [button, keys] : {std::pair{Qt::RightButton, Qt::NoModifier}, std::pair{Qt::LeftButton, Qt::ControlModifier}}) {
        scene_.axis().fitAll();
        drag(at(3, LaneId{0}), at(6, LaneId{1}), button, keys);
        EXPECT_NEAR(static_cast<double>(range().first()), 3e6, 2e4);
        EXPECT_NEAR(static_cast<double>(range().last()), 6e6, 2e4);
    }
}

TEST_F(Widget, MeasuresASpan)
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

TEST_F(Widget, SelectsWhatIsClicked)
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

TEST_F(Widget, TellsWhatIsUnderTheMouse)
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

TEST_F(Widget, FitsTheBlockThatIsDoubleClicked)
{
    QTest::mouseDClick(&widget_, Qt::LeftButton, {}, at(5, LaneId{0}).toPoint());
    EXPECT_NEAR(static_cast<double>(range().first()), 4e6 - 3e4, 1e3);
    EXPECT_NEAR(static_cast<double>(range().last()), 6e6 + 3e4, 1e3);
}

TEST_F(Widget, ZoomsAndPansByKeys)
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

TEST_F(Widget, FitsTheSelectionAndThenAll)
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

TEST_F(Widget, StepsThroughALane)
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

TEST_F(Widget, StepsThroughBubbles)
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

TEST_F(Widget, GoesFromLaneToLane)
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

TEST_F(Widget, MeasuresAndZoomsByKeys)
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

TEST_F(Widget, FindsTheSelectedBlockInTheNextSimulation)
{
    click(at(5, LaneId{0}));
    QSignalSpy changed(&widget_, &TimelineWidget::selectionChanged);
    QSignalSpy grew(&widget_, &TimelineWidget::selectionGrew);
    scene_.setSources({{twoRanks({.unit = {2 * kMs}})}});
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    EXPECT_EQ(grew.count(), 1);
    EXPECT_TRUE(widget_.accessibleDescription().contains("4 ms")) << widget_.accessibleDescription().toStdString();
    scene_.dataArrived();
    EXPECT_EQ(grew.count(), 2);
    EXPECT_EQ(changed.count(), 0);
}

TEST_F(Widget, ClearsABubbleThatIsGone)
{
    click(at(3, LaneId{0}));
    ASSERT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    const auto busy = std::make_shared<traces::Trace>();
    const LaneId lane = busy->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    for (int i = 0; i < 9; ++i)
        busy->append(lane, {.begin = i * kMs, .end = (i + 1) * kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{i}), .step = {}, .text = {}});
    QSignalSpy changed(&widget_, &TimelineWidget::selectionChanged);
    scene_.setSources({{busy}});
    EXPECT_TRUE(widget_.selection().none());
    EXPECT_EQ(changed.count(), 1);
}

TEST_F(Widget, TellsTheStepUnderTheRuler)
{
    const QString text = rulerText(scene_, 5 * kMs);
    for (const char* part : {"step 0", "fill", "1 ms", "drain", "2 ms", "bubble", "33.33 %"}) EXPECT_TRUE(text.contains(part)) << part;
    EXPECT_TRUE(rulerText(scene_, 50 * kMs).isEmpty());
}

TEST_F(Widget, BringsASelectedBlockIntoView)
{
    scene_.axis().setRange({0, kMs});
    click(at(0.5, LaneId{0}));
    for (int i = 0; i < 5; ++i) key(Qt::Key_Right);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 3})); // at 7 ms
    EXPECT_LE(range().first(), 7 * kMs);
    EXPECT_GE(range().last(), 7 * kMs + 1);
}

TEST_F(Widget, FollowsHandOffs)
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

TEST_F(Widget, MarksTheSelection)
{
    click(at(5, LaneId{0}));
    key(Qt::Key_M);
    EXPECT_EQ(widget_.measurement(), (Interval{4 * kMs, 6 * kMs}));
    key(Qt::Key_M);
    EXPECT_FALSE(widget_.measurement());
}

TEST_F(Widget, ClearsStepByStepWithEscape)
{
    click(at(5, LaneId{0}));
    key(Qt::Key_M);
    key(Qt::Key_Escape);
    EXPECT_FALSE(widget_.measurement());
    EXPECT_FALSE(widget_.selection().none());
    key(Qt::Key_Escape);
    EXPECT_TRUE(widget_.selection().none());
}

TEST_F(Widget, GoesToStartAndEnd)
{
    scene_.axis().setRange({4 * kMs, 5 * kMs});
    key(Qt::Key_End);
    EXPECT_NEAR(static_cast<double>(range().last()), 9.015e6, 1e3);
    key(Qt::Key_Home);
    EXPECT_NEAR(static_cast<double>(range().first()), -0.015e6, 1e3);
}

TEST_F(Widget, FoldsARankByItsHeader)
{
    const QPointF header(30, at(0, LaneId{0}).y());
    click(header);
    EXPECT_EQ(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    click(header);
    EXPECT_NE(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
}

TEST_F(Widget, FoldsByKey)
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

TEST_F(Widget, KeepsARankFoldedWhenItsSourceTakesAnotherPlace)
{
    const auto measured = twoRanks({.label = traces::TraceLabel::Measured});
    scene_.setSources({{twoRanks()}, {measured}});
    click({30, lanesTop() + widget_.laneLayout().rowOf(1, LaneId{0})->y + 5});
    EXPECT_EQ(widget_.laneLayout().rowOf(1, LaneId{2}), nullptr);
    scene_.setSources({{measured}});
    EXPECT_EQ(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    scene_.setSources({{twoRanks()}});
    EXPECT_NE(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
}

TEST_F(Widget, LeavesTheLanesAloneWhenHovering)
{
    widget_.grab();
    send(QEvent::MouseMove, at(5, LaneId{0}), Qt::NoButton, Qt::NoButton);
    EXPECT_TRUE(widget_.pictureIsCurrent()); // only the layer over it was painted
    scene_.axis().zoom(0.5, 0);
    EXPECT_FALSE(widget_.pictureIsCurrent());
}

TEST_F(Widget, ShowsTheCursorOfAnotherView)
{
    const QImage before = widget_.grab().toImage();
    widget_.setHoverTime(3 * kMs);
    const QImage after = widget_.grab().toImage();
    const int x = static_cast<int>(widget_.mapping().x(3 * kMs));
    EXPECT_NE(before.pixel(x, 380), after.pixel(x, 380));
    EXPECT_EQ(before.pixel(x + 20, 380), after.pixel(x + 20, 380));
}

TEST_F(Widget, RingsWhenFocused)
{
    widget_.activateWindow();
    widget_.setFocus();
    QApplication::processEvents();
    ASSERT_TRUE(widget_.hasFocus());
    EXPECT_EQ(widget_.grab().toImage().pixelColor(1, 200), widget_.theme().accent);
}

TEST_F(Widget, DropsASelectionThatIsGone)
{
    click(at(8, LaneId{0}));
    scene_.setSources({{std::make_shared<traces::Trace>()}});
    EXPECT_TRUE(widget_.selection().none());
    widget_.grab();
}

TEST_F(Widget, TellsWhatToDoWhenThereIsNothing)
{
    scene_.setSources({});
    widget_.setEmptyText("No pipeline yet", "Choose a plan on the left.");
    const QImage image = widget_.grab().toImage();
    int ink = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) ink += image.pixelColor(x, y) == widget_.theme().text;
    EXPECT_GT(ink, 50);
    for (const Qt::Key k : {Qt::Key_W, Qt::Key_F, Qt::Key_Right, Qt::Key_BracketLeft, Qt::Key_M, Qt::Key_L, Qt::Key_End}) key(k);
    EXPECT_TRUE(widget_.selection().none());
}

TEST_F(Widget, FollowsARun)
{
    const auto trace = twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs}});
    scene_.setSources({{trace, {}, true}});
    const auto grow = [&](int step) {
        const TimeNs begin = step * 10 * kMs;
        trace->append(LaneId{0}, {.begin = begin, .end = begin + 9 * kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0}),
                                  .step = traces::Step{step}, .text = {}});
        scene_.dataArrived();
    };
    QSignalSpy following(&widget_, &TimelineWidget::followingChanged);
    key(Qt::Key_L);
    EXPECT_TRUE(widget_.following());
    for (int step = 1; step < 8; ++step) {
        grow(step);
        EXPECT_GE(range().last(), scene_.newest());
    }
    EXPECT_FALSE(scene_.axis().showsAll()); // the window moves along
    EXPECT_NEAR(range().length, 2.2 * 9e6, 1e6);

    wheel(at(75, LaneId{0}), {0, 120}); // zooming goes on following
    EXPECT_TRUE(widget_.following());
    for (int i = 0; i < 6; ++i) key(Qt::Key_A); // moving away does not
    EXPECT_FALSE(widget_.following());
    const TimeRange held = range();
    grow(8);
    EXPECT_EQ(range(), held);
    EXPECT_EQ(following.count(), 2);
}

TEST_F(Widget, StopsFollowingWhenTheUserGoesElsewhere)
{
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs, kMs, kMs}}), {}, true}});
    const auto endedBy = [&](const char* what, const auto& move) {
        widget_.setFollowing(true);
        move();
        EXPECT_FALSE(widget_.following()) << what;
    };
    const auto keptBy = [&](const char* what, const auto& move) {
        widget_.setFollowing(true);
        move();
        EXPECT_TRUE(widget_.following()) << what;
    };
    endedBy("fit all", [&] { widget_.fitAll(); });
    scene_.axis().zoom(0.5, 20 * kMs);
    endedBy("a drag", [&] { drag(at(22, LaneId{0}), at(22, LaneId{0}) + QPointF(30, 0)); });
    endedBy("a box", [&] { drag(at(21, LaneId{0}), at(24, LaneId{0}), Qt::RightButton); });
    endedBy("a key", [&] { key(Qt::Key_D); });
    endedBy("back", [&] { key(Qt::Key_Backspace); });
    endedBy("home", [&] { key(Qt::Key_Home); });
    keptBy("the wheel", [&] { wheel(at(22, LaneId{0}), {0, 120}); });
    keptBy("a zoom key", [&] { key(Qt::Key_S); });
    keptBy("data", [&] { scene_.dataArrived(); });
}

TEST_F(Widget, StopsFollowingWhenTheRunEnds)
{
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured}), {}, true}});
    key(Qt::Key_L);
    EXPECT_TRUE(widget_.following());
    scene_.setGrowing(0, false);
    EXPECT_FALSE(widget_.following());
}

TEST_F(Widget, NamesItselfAndItsKeys)
{
    EXPECT_FALSE(widget_.accessibleName().isEmpty());
    click(at(5, LaneId{0}));
    EXPECT_TRUE(widget_.accessibleDescription().contains("0B0"));
    for (const auto& help : TimelineWidget::keyHelp()) {
        EXPECT_FALSE(help.keys.isEmpty());
        EXPECT_FALSE(help.what.isEmpty());
    }
}

TEST_F(Widget, SurvivesASourceThatShrinks)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs, kMs, kMs}})}});
    send(QEvent::MouseMove, at(5, LaneId{1}), Qt::NoButton, Qt::NoButton);
    widget_.grab();
    scene_.setArrangement(Arrangement::Overlaid);
    widget_.grab();
    scene_.setSources({{twoRanks()}});
    widget_.grab();
    scene_.setSources({});
    widget_.grab();
    EXPECT_TRUE(widget_.hovered().none());
}

} // namespace
} // namespace stagecraft::ui
