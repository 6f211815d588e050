// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/arrow_painter.h"

#include "ui/timeline/clip.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr double kHead = 8;       // length of an arrow's head, and its width
constexpr double kLeastSlack = 20; // pixels between two blocks that a curve has room in

struct End {
    double x = 0;
    double top = 0;
    double bottom = 0;

    [[nodiscard]] double middle() const { return (top + bottom) / 2; }
};

// A slice of the item's source, shown where the item is, or where its own step is shown.
std::optional<traces::Interval> shownSlice(const TimelineScene& scene, const TimelineItem& item, traces::SliceRef ref)
{
    TimelineItem other{.kind = TimelineItem::Kind::Slice, .source = item.source, .segment = item.segment, .slice = ref};
    const auto& segments = scene.segments(item.source);
    const traces::Slice slice = scene.trace(item.source).slice(ref);
    const auto holds = [&](int at) {
        const traces::Interval& span = segments[static_cast<std::size_t>(at)].span;
        return slice.begin >= span.begin && slice.begin < span.end;
    };
    if (!holds(item.segment))
        for (int i = 0; i < static_cast<int>(segments.size()); ++i)
            if (holds(i)) other.segment = i;
    return scene.shownSpan(other);
}

std::optional<End> endOf(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas,
                         const TimelineItem& item, traces::SliceRef ref, bool atEnd)
{
    const Row* row = layout.rowOf(item.source, ref.lane);
    const auto shown = shownSlice(scene, item, ref);
    if (!row || !shown) return std::nullopt;
    const double top = areas.lanes.top() + row->y - areas.scroll;
    return End{areas.map.x(atEnd ? shown->end : shown->begin), top, top + row->height};
}

void paintHead(QPainter& painter, QPointF tip, QPointF direction, const QRectF& area, const QColor& colour)
{
    const QPointF back = tip - direction * kHead;
    const QPointF side(-direction.y() * kHead / 2, direction.x() * kHead / 2);
    const QPolygonF head{tip, back + side, back - side};
    if (!area.contains(head.boundingRect())) return;
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(head);
}

void paintArrow(QPainter& painter, const End& from, const End& to, const QRectF& area, const QPen& pen)
{
    painter.setPen(pen);
    const bool down = to.middle() > from.middle();
    const bool otherRow = from.bottom <= to.top || to.bottom <= from.top;
    if (otherRow && to.x - from.x < kLeastSlack) {
        // Where the next block begins at once there is no room for a curve: straight from edge to edge of the two rows.
        const QPointF start(from.x, down ? from.bottom - 4 : from.top + 4);
        const QPointF tip(std::max(to.x, from.x), down ? to.top + kHead : to.bottom - kHead);
        const QLineF line(start, tip);
        const QPointF direction = line.length() > 0 ? (tip - start) / line.length() : QPointF(0, down ? 1 : -1);
        if (const auto seen = clippedLine({start, tip - direction * (kHead - 2)}, area)) painter.drawLine(*seen);
        paintHead(painter, tip, direction, area, pen.color());
        return;
    }
    const double bend = std::clamp((to.x - from.x) / 2, 8.0, 80.0);
    QPainterPath path(QPointF(from.x, from.middle()));
    path.cubicTo(from.x + bend, from.middle(), to.x - bend, to.middle(), to.x - 5, to.middle());
    for (const QLineF& piece : clippedPath(path, area)) painter.drawLine(piece);
    paintHead(painter, {to.x, to.middle()}, {1, 0}, area, pen.color());
}

} // namespace

const std::vector<traces::Edge>& SelectedEdges::of(const TimelineScene& scene, const TimelineItem& item)
{
    const bool slice = item.kind == TimelineItem::Kind::Slice && scene.shownSpan(item).has_value();
    const std::shared_ptr<const traces::Trace> trace = slice ? scene.sources()[static_cast<std::size_t>(item.source)].trace : nullptr;
    const std::size_t edgeCount = trace ? trace->edgeCount() : 0;
    if (item == item_ && trace == trace_.lock() && edgeCount == edgeCount_) return edges_;
    item_ = item;
    trace_ = trace;
    edgeCount_ = edgeCount;
    edges_.clear();
    if (!trace) return edges_;
    edges_ = trace->edgesInto(item.slice);
    const std::vector<traces::Edge> leaving = trace->edgesFrom(item.slice);
    edges_.insert(edges_.end(), leaving.begin(), leaving.end());
    return edges_;
}

QRectF itemRect(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const TimelineItem& item)
{
    const auto span = scene.shownSpan(item);
    if (!span) return {};
    traces::LaneId lane = item.slice.lane;
    if (item.kind == TimelineItem::Kind::Gap) {
        const auto own = scene.trace(item.source).findLane(item.gap.rank, traces::LaneKind::Compute);
        if (!own) return {};
        lane = *own;
    }
    const Row* row = layout.rowOf(item.source, lane);
    if (!row) return {};
    const double left = areas.map.x(span->begin);
    const double right = std::max(areas.map.x(span->end), left + 2);
    return QRectF(left, areas.lanes.top() + row->y - areas.scroll, right - left, row->height) & areas.lanes;
}

void paintSelection(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas,
                    const TimelineItem& item, const std::vector<traces::Edge>& edges, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    for (const traces::Edge& edge : edges) {
        const auto from = endOf(scene, layout, areas, item, edge.from, true);
        const auto to = endOf(scene, layout, areas, item, edge.to, false);
        if (!from || !to) continue;
        QPen pen(theme.arrow, 1.6);
        if (edge.kind == traces::EdgeKind::Memory) pen.setStyle(Qt::DashLine);
        if (edge.kind == traces::EdgeKind::Flush) pen.setStyle(Qt::DotLine);
        // A light line under the dark one keeps the arrow apart from the blocks that it crosses.
        paintArrow(painter, *from, *to, areas.lanes, QPen(theme.base, 4));
        paintArrow(painter, *from, *to, areas.lanes, pen);
    }
    const QRectF box = itemRect(scene, layout, areas, item);
    if (!box.isEmpty()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme.base, 4));
        painter.drawRoundedRect((box.adjusted(-1, -1, 1, 1)) & areas.lanes, 3, 3);
        painter.setPen(QPen(theme.accent, 2));
        painter.drawRoundedRect((box.adjusted(-1, -1, 1, 1)) & areas.lanes, 3, 3);
    }
    painter.restore();
}

} // namespace stagecraft::ui
