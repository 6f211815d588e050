// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/hit_test.h"

#include "ui/timeline/lane_picture.h"
#include "ui/timeline/time_ticks.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using traces::Gap;
using traces::Lane;
using traces::TimeNs;

// The slice at a moment, or the nearest one within `tolerance`; size() if none.
std::size_t sliceNear(const Lane& lane, TimeNs t, TimeNs tolerance)
{
    const std::size_t after = lane.firstEndingAfter(t);
    if (after < lane.size() && lane.begin(after) <= t) return after;
    const TimeNs right = after < lane.size() ? lane.begin(after) - t : tolerance + 1;
    const TimeNs left = after > 0 ? t - lane.end(after - 1) : tolerance + 1;
    if (std::min(left, right) > tolerance) return lane.size();
    return left < right ? after - 1 : after;
}

std::optional<Gap> gapAt(const TimelineScene& scene, int source, const Lane& lane, TimeNs t)
{
    const std::size_t after = lane.firstEndingAfter(t);
    for (const std::size_t neighbour : {after, after - 1}) { // after - 1 wraps past size() when there is none
        if (neighbour >= lane.size()) continue;
        if (const Gap* gap = scene.gaps(source, lane.step(neighbour)).at(lane.info().rank, t)) return *gap;
    }
    return std::nullopt;
}

QString row(const QString& name, const QString& value)
{
    return QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(name, value.toHtmlEscaped());
}

QString fromTo(traces::Interval shown)
{
    return durationText(std::max<TimeNs>(0, shown.begin)) + QStringLiteral(" \u2013 ") + durationText(std::max<TimeNs>(0, shown.end));
}

} // namespace

TimelineItem itemAt(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, QPointF pos)
{
    if (!areas.lanes.contains(pos)) return {};
    const LaneLayout::Sticky sticky = layout.stickyHeader(areas.scroll);
    const double y = pos.y() - areas.lanes.top();
    if (sticky.header && y < sticky.y + sticky.header->height) return {};
    const Row* hit = layout.rowAt(y + areas.scroll);
    if (!hit || hit->kind != Row::Kind::Lane) return {};

    const Lane& lane = scene.trace(hit->source).lane(hit->lane);
    const auto tolerance = static_cast<TimeNs>(kHitTolerance * areas.map.nsPerPixel());
    const auto& segments = scene.segments(hit->source);
    for (int i = static_cast<int>(segments.size()) - 1; i >= 0; --i) { // a later one lies over an earlier one
        const Segment& segment = segments[static_cast<std::size_t>(i)];
        const TimeNs t = areas.map.time(pos.x()) - segment.shift;
        if (t < segment.span.begin - tolerance || t > segment.span.end + tolerance) continue;
        TimelineItem item{.kind = TimelineItem::Kind::Slice, .source = hit->source, .segment = i};
        const std::size_t slice = sliceNear(lane, t, tolerance);
        if (slice < lane.size() && lane.begin(slice) < segment.span.end && lane.end(slice) >= segment.span.begin) {
            item.slice = {hit->lane, static_cast<std::uint32_t>(slice)};
            return item;
        }
        if (hit->laneKind != traces::LaneKind::Compute) continue;
        if (const auto gap = gapAt(scene, hit->source, lane, t)) {
            item.kind = TimelineItem::Kind::Gap;
            item.gap = *gap;
            return item;
        }
    }
    return {};
}

QString itemText(const TimelineScene& scene, const TimelineItem& item)
{
    const auto shown = scene.shownSpan(item);
    if (!shown) return {};
    const traces::Trace& trace = scene.trace(item.source);
    QString text;
    if (item.kind == TimelineItem::Kind::Gap) {
        text = QStringLiteral("<b>idle %1</b> \u00b7 %2<table>").arg(durationText(item.gap.span.length()), causeText(item.gap).toHtmlEscaped());
        text += row(QStringLiteral("rank"), QString::number(item.gap.rank.value));
        if (item.gap.cause == traces::GapCause::WaitForStage || item.gap.cause == traces::GapCause::Transfer)
            text += row(QStringLiteral("for"), QString::fromStdString(trace.sliceName(item.gap.producer)));
        if (item.gap.cause != traces::GapCause::Draining)
            text += row(QStringLiteral("until"), QString::fromStdString(trace.sliceName(item.gap.before)));
    } else {
        const traces::Slice slice = trace.slice(item.slice);
        const auto kind = traces::kindName(slice.action.kind());
        const QString name = QString::fromStdString(trace.sliceName(item.slice)).toHtmlEscaped();
        text = QStringLiteral("<b>%1</b> \u00b7 %2<table>").arg(name, durationText(slice.duration()));
        if (slice.action.kind() != traces::ActionKind::None) {
            text += row(QStringLiteral("what"), QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size())));
            text += row(QStringLiteral("stage"), QString::number(slice.action.stage().value));
            if (slice.action.microbatch().value >= 0) text += row(QStringLiteral("micro-batch"), QString::number(slice.action.microbatch().value));
        }
        text += row(QStringLiteral("rank"), QString::number(trace.lane(item.slice.lane).info().rank.value));
        text += row(QStringLiteral("step"), QString::number(slice.step.value));
    }
    text += row(QStringLiteral("time"), fromTo(*shown));
    if (scene.sourceCount() > 1) text += row(QStringLiteral("trace"), sourceLabel(scene.sources()[static_cast<std::size_t>(item.source)]));
    return text + QStringLiteral("</table>");
}

} // namespace stagecraft::ui
