// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/hit_test.h"

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
        if (hit->gaps) {
            const Lane& gaps = scene.trace(hit->source).lane(*hit->gaps);
            if (const std::size_t still = sliceNear(gaps, t, 0); still < gaps.size()) {
                item.slice = {*hit->gaps, static_cast<std::uint32_t>(still)};
                return item;
            }
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

} // namespace stagecraft::ui
