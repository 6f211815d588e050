// SPDX-License-Identifier: GPL-3.0-or-later
//
// Mouse and keys of the timeline.
#include "ui/timeline/header_painter.h"
#include "ui/timeline/hit_test.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
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
constexpr double kKeyZoom = 0.7;
constexpr double kKeyPan = 0.15;   // of the view
constexpr double kNotch = 120;     // of QWheelEvent::angleDelta

} // namespace

std::vector<TimelineWidget::KeyHelp> TimelineWidget::keyHelp()
{
    return {
        {tr("W  S"), tr("zoom in, out")},
        {tr("A  D"), tr("move left, right")},
        {tr("mouse wheel"), tr("zoom at the cursor")},
        {tr("Shift + wheel"), tr("scroll the lanes")},
        {tr("drag"), tr("move")},
        {tr("Ctrl + drag, right drag"), tr("zoom to a box")},
        {tr("Shift + drag"), tr("measure a span")},
        {tr("click, double click"), tr("select, fit the block")},
        {tr("F"), tr("fit the selection; twice: fit all")},
        {tr("0"), tr("fit all")},
        {tr("M"), tr("measure the selected block")},
        {tr("L"), tr("follow a run: on, off")},
        {tr("\u2190  \u2192   or   ,  ."), tr("previous, next block of the lane")},
        {tr("[  ]"), tr("follow a hand-off backward, forward")},
        {tr("\u2191  \u2193"), tr("scroll the lanes")},
        {tr("Home  End"), tr("go to the start, to the end")},
        {tr("Backspace"), tr("previous view; with Shift: next view")},
        {tr("Esc"), tr("clear measurement, then selection")},
    };
}

bool TimelineWidget::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const QString text = itemText(scene_, itemAt(help->pos()));
        if (text.isEmpty()) QToolTip::hideText();
        else QToolTip::showText(help->globalPos(), text, this);
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
        panBy(-turn.x() / kNotch * kKeyPan);
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
    drag_ = Drag::Pending;
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF pos = event->position();
    mouseInside_ = rect().contains(pos.toPoint());
    if (drag_ == Drag::Pending && wanted_ != Drag::None &&
        (pos - pressPos_).manhattanLength() >= QApplication::startDragDistance()) {
        drag_ = wanted_;
        if (drag_ == Drag::Pan) setCursor(Qt::ClosedHandCursor);
    }
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
    hoverAt(pos);
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
    const std::pair key{group->source, group->rank};
    if (!folded_.erase(key)) folded_.insert(key);
    relayout();
    emit foldingChanged();
    return true;
}

void TimelineWidget::zoomBy(double factor)
{
    // At the mouse where it is over the lanes, else in the middle.
    const QRectF lanes = lanesRect();
    const double x = mouseInside_ && lanes.contains(lastPos_) ? lastPos_.x() : lanes.center().x();
    scene_.axis().zoom(factor, mapping().time(x));
}

void TimelineWidget::panBy(double share) { scene_.axis().pan(share * scene_.axis().range().length); }

void TimelineWidget::fitAll()
{
    scene_.axis().fitAll();
}

void TimelineWidget::fitSelection()
{
    const auto span = scene_.shownSpan(selection_);
    TimeAxis& axis = scene_.axis();
    const TimeRange before = axis.range();
    if (span) axis.fit(*span);
    if (!span || axis.range() == before) axis.fitAll();
}

void TimelineWidget::markSelection()
{
    const auto span = scene_.shownSpan(selection_);
    if (!span || measurement_ == span) setMeasurement(std::nullopt);
    else setMeasurement(span);
}

void TimelineWidget::clearSelection()
{
    select({});
}

void TimelineWidget::selectNext() { stepTo(1); }
void TimelineWidget::selectPrevious() { stepTo(-1); }

void TimelineWidget::stepTo(int direction)
{
    TimelineItem item = selection_;
    if (item.kind == TimelineItem::Kind::Gap) {
        // From a gap, the slices around it.
        const auto lane = scene_.trace(item.source).findLane(item.gap.rank, traces::LaneKind::Compute);
        if (!lane) return;
        const std::size_t after = scene_.trace(item.source).lane(*lane).firstEndingAfter(item.gap.span.begin);
        item.kind = TimelineItem::Kind::Slice;
        item.slice = {*lane, static_cast<std::uint32_t>(after)};
        item.gap = {};
        if (direction > 0 && after < scene_.trace(item.source).lane(*lane).size()) {
            selectAndShow(item);
            return;
        }
        if (direction > 0) return;
    } else if (item.none()) {
        // Nothing to start from: the first slice in sight of the first lane that has one.
        const TimeNs left = scene_.axis().range().first();
        for (const Row& row : layout_.rows()) {
            if (row.kind != Row::Kind::Lane || scene_.segments(row.source).empty()) continue;
            const traces::Lane& lane = scene_.trace(row.source).lane(row.lane);
            const std::size_t first = lane.firstEndingAfter(left - scene_.segments(row.source).front().shift);
            if (first >= lane.size()) continue;
            selectAndShow({.kind = TimelineItem::Kind::Slice, .source = row.source, .slice = {row.lane, static_cast<std::uint32_t>(first)}});
            return;
        }
        return;
    }
    const traces::Lane& lane = scene_.trace(item.source).lane(item.slice.lane);
    const std::int64_t next = static_cast<std::int64_t>(item.slice.index) + direction;
    if (next < 0 || next >= static_cast<std::int64_t>(lane.size())) return;
    item.slice.index = static_cast<std::uint32_t>(next);
    selectAndShow(item);
}

void TimelineWidget::followEdgeForward() { followEdge(1); }
void TimelineWidget::followEdgeBackward() { followEdge(-1); }

void TimelineWidget::followEdge(int direction)
{
    if (selection_.kind != TimelineItem::Kind::Slice || !scene_.shownSpan(selection_)) return;
    const traces::Trace& trace = scene_.trace(selection_.source);
    std::vector<traces::Edge> edges = direction > 0 ? trace.edgesFrom(selection_.slice) : trace.edgesInto(selection_.slice);
    if (edges.empty()) return;
    // Data before memory and flush; forward to the first that could use it, backward to the last that was waited for.
    const auto best = std::min_element(edges.begin(), edges.end(), [&](const traces::Edge& a, const traces::Edge& b) {
        if (a.kind != b.kind) return a.kind < b.kind;
        return direction > 0 ? a.ready < b.ready : a.ready > b.ready;
    });
    TimelineItem item = selection_;
    item.slice = direction > 0 ? best->to : best->from;
    selectAndShow(item);
}

void TimelineWidget::keyPressEvent(QKeyEvent* event)
{
    TimeAxis& axis = scene_.axis();
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    if (event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) {
        QWidget::keyPressEvent(event);
        return;
    }
    const double length = axis.range().length;
    switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoomBy(kKeyZoom); break;
    case Qt::Key_S:
    case Qt::Key_Minus: zoomBy(1 / kKeyZoom); break;
    case Qt::Key_A: panBy(-kKeyPan); break;
    case Qt::Key_D: panBy(kKeyPan); break;
    case Qt::Key_F: fitSelection(); break;
    case Qt::Key_0: fitAll(); break;
    case Qt::Key_M: markSelection(); break;
    case Qt::Key_L: setFollowing(!following_); break;
    case Qt::Key_Right:
    case Qt::Key_Period: selectNext(); break;
    case Qt::Key_Left:
    case Qt::Key_Comma: selectPrevious(); break;
    case Qt::Key_BracketRight: followEdgeForward(); break;
    case Qt::Key_BracketLeft: followEdgeBackward(); break;
    case Qt::Key_Up: scrollBar_->setValue(scrollBar_->value() - 40); break;
    case Qt::Key_Down: scrollBar_->setValue(scrollBar_->value() + 40); break;
    case Qt::Key_PageUp: scrollBar_->setValue(scrollBar_->value() - scrollBar_->pageStep()); break;
    case Qt::Key_PageDown: scrollBar_->setValue(scrollBar_->value() + scrollBar_->pageStep()); break;
    case Qt::Key_Home: axis.pan(axis.range().at(axis.limits().begin) - TimeAxis::kFitMargin * length); break;
    case Qt::Key_End: axis.pan(axis.range().at(axis.limits().end) - (1 - TimeAxis::kFitMargin) * length); break;
    case Qt::Key_Backspace: shift ? axis.forward() : axis.back(); break;
    case Qt::Key_Escape:
        if (drag_ != Drag::None) {
            drag_ = Drag::None;
            unsetCursor();
            hoverAt(lastPos_);
        } else if (measurement_) setMeasurement(std::nullopt);
        else if (!selection_.none()) clearSelection();
        else QWidget::keyPressEvent(event);
        break;
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace stagecraft::ui
