// SPDX-License-Identifier: GPL-3.0-or-later
//
// The keys of the timeline.
#include "ui/timeline/search_bar.h"
#include "ui/timeline/timeline_widget.h"

#include <QKeyEvent>
#include <QScrollBar>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::Interval;
using traces::TimeNs;

constexpr double kKeyZoom = 0.7;
constexpr double kKeyPan = 0.15; // of the view

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
        {tr("\u2190  \u2192   or   ,  ."), tr("previous, next block or bubble of the lane")},
        {tr("\u2191  \u2193"), tr("block or bubble in the lane above, below")},
        {tr("[  ]"), tr("follow a hand-off backward, forward")},
        {tr("F"), tr("fit the selection; twice: fit all")},
        {tr("0"), tr("fit all")},
        {tr("M"), tr("measure the selected block")},
        {tr("Shift + \u2190  \u2192"), tr("measure on to the previous, next block")},
        {tr("Z"), tr("zoom to the measured span")},
        {tr("C"), tr("fold the selected rank; with Shift: all ranks")},
        {tr("/"), tr("search: %1").arg(SearchBar::syntax())},
        {tr("N"), tr("next match; with Shift: previous match")},
        {tr("L"), tr("follow a run: on, off")},
        {tr("P"), tr("critical path: on, off")},
        {tr("Ctrl + \u2190  \u2192"), tr("move the selected block in its rank's order, where that can be edited")},
        {tr("E"), tr("edit the order by dragging blocks: on, off")},
        {tr("Page up  Page down"), tr("scroll the lanes")},
        {tr("Home  End"), tr("go to the start, to the end")},
        {tr("Backspace"), tr("previous view; with Shift: next view")},
        {tr("Esc"), tr("clear measurement, then selection")},
    };
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

void TimelineWidget::selectNext() { stepTo(Direction::On); }
void TimelineWidget::selectPrevious() { stepTo(Direction::Back); }

void TimelineWidget::stepTo(Direction direction)
{
    const TimelineItem next = selection_.none() ? firstInSight(scene_, layout_, scene_.axis().range().first())
                                                : alongLane(scene_, selection_, direction);
    if (!next.none()) selectAndShow(next);
}

void TimelineWidget::stepAcross(Direction direction)
{
    const auto span = scene_.shownSpan(selection_);
    if (!span) {
        stepTo(direction);
        return;
    }
    // Where the selected item is seen; of one that reaches out of the view, the part in sight.
    const TimeRange& range = scene_.axis().range();
    const TimeNs left = std::max(span->begin, range.first());
    const TimeNs right = std::min(span->end, range.last());
    const TimeNs middle = left < right ? left + (right - left) / 2 : span->begin + span->length() / 2;
    const TimelineItem next = acrossLanes(scene_, layout_, selection_, middle, direction);
    if (!next.none()) selectAndShow(next);
}

// The measured span, or the selected item, grows by the next item of the lane.
void TimelineWidget::measureAlong(Direction direction)
{
    const auto from = measurement_ ? measurement_ : scene_.shownSpan(selection_);
    stepTo(direction);
    const auto to = scene_.shownSpan(selection_);
    if (!to) return;
    setMeasurement(from ? Interval{std::min(from->begin, to->begin), std::max(from->end, to->end)} : *to);
}

void TimelineWidget::fitMeasurement()
{
    if (measurement_ && measurement_->length() > 0) scene_.axis().setRange(*measurement_);
}

void TimelineWidget::foldByKey(bool all)
{
    const std::vector<RankGroup>& groups = layout_.groups();
    if (all) {
        setAllFolded(std::any_of(groups.begin(), groups.end(), [](const RankGroup& group) { return group.foldable && !group.folded; }));
        return;
    }
    if (selection_.none()) return;
    const traces::Rank rank = selection_.kind == TimelineItem::Kind::Gap
                                  ? selection_.gap.rank
                                  : scene_.trace(selection_.source).lane(selection_.slice.lane).info().rank;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const RankGroup& g) { return g.source == selection_.source && g.rank == rank; });
    if (group != groups.end() && group->foldable) toggleFold(*group);
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
    item.segment = segmentHolding(scene_, item.source, trace.slice(item.slice).begin, item.segment).value_or(item.segment);
    selectAndShow(item);
}

void TimelineWidget::keyPressEvent(QKeyEvent* event)
{
    TimeAxis& axis = scene_.axis();
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    if ((event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier && mover_ && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)) {
        moveSelection(event->key() == Qt::Key_Left ? Direction::Back : Direction::On);
        return;
    }
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
    case Qt::Key_P: setCriticalPath(!criticalPath_); break;
    case Qt::Key_E:
        if (mover_) setMoving(!moving_);
        break;
    case Qt::Key_Slash: openSearch(); break;
    case Qt::Key_N: shift ? findPrevious() : findNext(); break;
    case Qt::Key_Right: shift ? measureAlong(Direction::On) : selectNext(); break;
    case Qt::Key_Left: shift ? measureAlong(Direction::Back) : selectPrevious(); break;
    case Qt::Key_Period: selectNext(); break;
    case Qt::Key_Comma: selectPrevious(); break;
    case Qt::Key_BracketRight: followEdgeForward(); break;
    case Qt::Key_BracketLeft: followEdgeBackward(); break;
    case Qt::Key_Up: stepAcross(Direction::Back); break;
    case Qt::Key_Down: stepAcross(Direction::On); break;
    case Qt::Key_Z: fitMeasurement(); break;
    case Qt::Key_C: foldByKey(shift); break;
    case Qt::Key_PageUp: scrollBar_->setValue(scrollBar_->value() - scrollBar_->pageStep()); break;
    case Qt::Key_PageDown: scrollBar_->setValue(scrollBar_->value() + scrollBar_->pageStep()); break;
    case Qt::Key_Home: axis.pan(axis.range().at(axis.limits().begin) - TimeAxis::kFitMargin * length); break;
    case Qt::Key_End: axis.pan(axis.range().at(axis.limits().end) - (1 - TimeAxis::kFitMargin) * length); break;
    case Qt::Key_Backspace: shift ? axis.forward() : axis.back(); break;
    case Qt::Key_Escape:
        if (drag_ != Drag::None) cancelDrag();
        else if (measurement_) setMeasurement(std::nullopt);
        else if (!selection_.none()) clearSelection();
        else QWidget::keyPressEvent(event);
        break;
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace stagecraft::ui
