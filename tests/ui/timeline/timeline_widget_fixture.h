// SPDX-License-Identifier: GPL-3.0-or-later
//
// A timeline of twoRanks(), with mouse and keys.
#pragma once

#include "tests/ui/support/traces.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QWheelEvent>
#include <QtTest>

#include <gtest/gtest.h>

namespace stagecraft::ui {

class TimelineWidgetTest : public ::testing::Test {
protected:
    TimelineWidgetTest() : widget_(scene_)
    {
        scene_.setSources({{support::twoRanks()}});
        widget_.resize(1100, 400);
        widget_.show();
        QApplication::processEvents();
    }

    QPointF at(double ms, traces::LaneId lane) const
    {
        const Row* row = widget_.laneLayout().rowOf(0, lane);
        return {widget_.mapping().x(static_cast<traces::TimeNs>(ms * support::kMs)), lanesTop() + row->y + row->height / 2};
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
    traces::SliceRef selected() const
    {
        EXPECT_EQ(widget_.selection().kind, TimelineItem::Kind::Slice);
        return widget_.selection().slice;
    }
    TimeRange range() const { return scene_.axis().range(); }

    TimelineScene scene_;
    TimelineWidget widget_;
};

} // namespace stagecraft::ui
