// SPDX-License-Identifier: GPL-3.0-or-later
//
// The mouse over the timeline.
#include "ui/timeline/header_painter.h"
#include "ui/bridge/plain_tip.h"
#include "ui/timeline/hit_test.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/item_details.h"
#include "ui/timeline/ruler_painter.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using traces::Interval;
using traces::TimeNs;

constexpr double kWheelZoom = 0.8; // per notch
constexpr double kWheelPan = 0.15;  // of the view
constexpr double kNotch = 120;     // of QWheelEvent::angleDelta

} // namespace

bool TimelineWidget::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const QRectF lanes = lanesRect();
        const QRectF ruler(lanes.left(), 0, lanes.width(), lanes.top());
        const QString text = ruler.contains(help->pos()) ? rulerText(scene_, mapping().time(help->pos().x()))
                                                         : detailsHtml(detailsOf(scene_, itemAt(help->pos())));
        if (text.isEmpty()) QToolTip::hideText();
        else QToolTip::showText(help->globalPos(), plainTip(text), this);
        return true;
    }
    if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) {
        const bool handled = QWidget::event(event);
        hoverAt(lastPos_);
        return handled;
    }
    return QWidget::event(event);
}

void TimelineWidget::contextMenuEvent(QContextMenuEvent* event)
{
    event->accept(); // the right button zooms
}

void TimelineWidget::wheelEvent(QWheelEvent* event)
{
    event->accept();
    const QPoint turn = event->angleDelta();
    if (event->modifiers() & Qt::ShiftModifier) {
        const int by = turn.y() != 0 ? turn.y() : turn.x(); // some platforms turn it sideways themselves
        scrollBar_->setValue(scrollBar_->value() - by / 2);
        return;
    }
    if (turn.x() != 0 && std::abs(turn.x()) > std::abs(turn.y())) {
        panBy(-turn.x() / kNotch * kWheelPan);
        return;
    }
    if (turn.y() == 0) return;
    const QRectF lanes = lanesRect();
    const double x = std::clamp(event->position().x(), lanes.left(), lanes.right());
    scene_.axis().zoom(std::pow(kWheelZoom, turn.y() / kNotch), mapping().time(x));
}

void TimelineWidget::mousePressEvent(QMouseEvent* event)
{
    if (drag_ != Drag::None || !area().contains(event->position())) return;
    pressPos_ = event->position();
    lastPos_ = pressPos_;
    const bool right = event->button() == Qt::RightButton;
    if (!right && event->button() != Qt::LeftButton) return;
    if (!right && toggleFoldAt(pressPos_)) return;
    const Qt::KeyboardModifiers keys = event->modifiers();
    wanted_ = right || (keys & Qt::ControlModifier) ? Drag::Box : keys & Qt::ShiftModifier ? Drag::Measure : Drag::Pan;
    if (pressPos_.x() < lanesRect().left()) wanted_ = Drag::None;
    if (wanted_ == Drag::Pan && moving_)
        if (const TimelineItem item = itemAt(pressPos_); mayMove(item)) {
            wanted_ = Drag::Move;
            held_ = HeldBlock{item, item.slice.index, {}};
        }
    drag_ = Drag::Pending;
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF pos = event->position();
    mouseInside_ = rect().contains(pos.toPoint());
    if (drag_ == Drag::Pending && wanted_ != Drag::None &&
        (pos - pressPos_).manhattanLength() >= QApplication::startDragDistance()) {
        drag_ = wanted_;
        if (drag_ == Drag::Pan || drag_ == Drag::Move) setCursor(Qt::ClosedHandCursor);
    }
    if (drag_ == Drag::Move) holdAt(pos);
    const TimeMapping map = mapping();
    if (drag_ == Drag::Pan) {
        scene_.axis().pan((lastPos_.x() - pos.x()) * map.nsPerPixel());
        scrollBar_->setValue(scrollBar_->value() - static_cast<int>(std::lround(pos.y() - lastPos_.y())));
    } else if (drag_ == Drag::Measure) {
        const TimeNs a = map.time(pressPos_.x());
        const TimeNs b = map.time(std::clamp(pos.x(), lanesRect().left(), lanesRect().right()));
        lastPos_ = pos;
        setMeasurement(Interval{std::min(a, b), std::max(a, b)});
    }
    hoverAt(pos);
    if (lanesRect().contains(pos) && !scene_.empty()) emit hoverTimeChanged(map.time(pos.x()));
    else emit hoverTimeChanged(std::nullopt);
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event)
{
    if (drag_ == Drag::None) return;
    endDrag(event->position());
}

void TimelineWidget::endDrag(QPointF pos)
{
    const Drag ended = drag_;
    const TimeMapping map = mapping();
    drag_ = Drag::None;
    unsetCursor();
    if (ended == Drag::Pending && wanted_ != Drag::Box) select(itemAt(pos));
    if (ended == Drag::Box) {
        const QRectF lanes = lanesRect();
        const TimeNs a = map.time(std::clamp(pressPos_.x(), lanes.left(), lanes.right()));
        const TimeNs b = map.time(std::clamp(pos.x(), lanes.left(), lanes.right()));
        if (a != b) scene_.axis().setRange({std::min(a, b), std::max(a, b)});
    }
    if (ended == Drag::Move) dropHeld();
    held_.reset();
    hoverAt(pos);
}

void TimelineWidget::cancelDrag()
{
    drag_ = Drag::None;
    held_.reset();
    unsetCursor();
    hoverAt(lastPos_);
}

void TimelineWidget::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || toggleFoldAt(event->position())) return;
    const auto span = scene_.shownSpan(itemAt(event->position()));
    if (!lanesRect().contains(event->position())) return;
    if (span) scene_.axis().fit(*span);
    else scene_.axis().fitAll();
}

void TimelineWidget::leaveEvent(QEvent*)
{
    mouseInside_ = false;
    hoverAt(lastPos_);
    emit hoverTimeChanged(std::nullopt);
}

bool TimelineWidget::toggleFoldAt(QPointF pos)
{
    const QRectF lanes = lanesRect();
    if (pos.x() >= lanes.left() || pos.y() < lanes.top()) return false;
    const RankGroup* group = layout_.groupAt(pos.y() - lanes.top() + scroll());
    if (!group || !group->foldable) return false;
    toggleFold(*group);
    return true;
}

} // namespace stagecraft::ui
