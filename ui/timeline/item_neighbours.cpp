// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/item_neighbours.h"

#include "ui/timeline/item_identity.h"

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::Gap;
using traces::Lane;
using traces::LaneId;
using traces::TimeNs;

bool hasGaps(const Lane& lane) { return lane.info().kind == traces::LaneKind::Compute && lane.info().depth == 0; }

std::optional<LaneId> laneOf(const TimelineScene& scene, const TimelineItem& item)
{
    if (item.kind == TimelineItem::Kind::Slice) return item.slice.lane;
    return scene.trace(item.source).findLane(item.gap.rank, traces::LaneKind::Compute);
}

TimelineItem sliceItem(const TimelineScene& scene, int source, int segment, LaneId lane, std::size_t index)
{
    TimelineItem item{.kind = TimelineItem::Kind::Slice, .source = source, .slice = {lane, static_cast<std::uint32_t>(index)}};
    const auto held = segmentHolding(scene, source, scene.trace(source).lane(lane).begin(index), segment);
    if (!held) return {};
    item.segment = *held;
    return item;
}

TimelineItem gapItem(const TimelineScene& scene, int source, int segment, const Gap& gap)
{
    TimelineItem item{.kind = TimelineItem::Kind::Gap, .source = source, .gap = gap};
    const auto held = segmentHolding(scene, source, gap.span.begin, segment);
    if (!held) return {};
    item.segment = *held;
    return item;
}

// The nearest gap of the steps around `slice` that begins at or after `from`, or with Back ends at or before it.
const Gap* gapBeside(const TimelineScene& scene, int source, const Lane& lane, std::size_t slice, TimeNs from, Direction direction)
{
    const Gap* best = nullptr;
    for (const std::size_t neighbour : {slice - 1, slice}) { // slice - 1 wraps past size() when there is none
        if (neighbour >= lane.size()) continue;
        const GapTable& gaps = scene.gaps(source, lane.step(neighbour));
        const Gap* gap = direction == Direction::On ? gaps.from(lane.info().rank, from) : gaps.until(lane.info().rank, from);
        if (!gap) continue;
        if (!best || (direction == Direction::On ? gap->span.begin < best->span.begin : gap->span.end > best->span.end)) best = gap;
    }
    return best;
}

} // namespace

TimelineItem alongLane(const TimelineScene& scene, const TimelineItem& item, Direction direction)
{
    const auto id = laneOf(scene, item);
    if (!id || !scene.shownSpan(item)) return {};
    const Lane& lane = scene.trace(item.source).lane(*id);
    const bool gap = item.kind == TimelineItem::Kind::Gap;
    const traces::Interval span = gap ? item.gap.span : traces::Interval{lane.begin(item.slice.index), lane.end(item.slice.index)};
    const std::size_t own = item.slice.index;
    const std::size_t after = gap ? lane.firstEndingAfter(span.begin) : own + 1;
    const std::size_t before = gap ? after - 1 : own - 1; // wraps past size() when there is none
    if (direction == Direction::On) {
        const Gap* idle = hasGaps(lane) ? gapBeside(scene, item.source, lane, after, span.end, direction) : nullptr;
        if (idle && (after >= lane.size() || idle->span.begin < lane.begin(after))) return gapItem(scene, item.source, item.segment, *idle);
        return after < lane.size() ? sliceItem(scene, item.source, item.segment, *id, after) : TimelineItem{};
    }
    const Gap* idle = hasGaps(lane) ? gapBeside(scene, item.source, lane, before + 1, span.begin, direction) : nullptr;
    if (idle && (before >= lane.size() || idle->span.end > lane.end(before))) return gapItem(scene, item.source, item.segment, *idle);
    return before < lane.size() ? sliceItem(scene, item.source, item.segment, *id, before) : TimelineItem{};
}

TimelineItem acrossLanes(const TimelineScene& scene, const LaneLayout& layout, const TimelineItem& item, TimeNs shown, Direction direction)
{
    const auto id = laneOf(scene, item);
    const Row* own = id ? layout.rowOf(item.source, *id) : nullptr;
    if (!own) return {};
    const std::vector<Row>& rows = layout.rows();
    const auto step = static_cast<std::ptrdiff_t>(direction);
    for (std::ptrdiff_t at = own - rows.data() + step; at >= 0 && at < static_cast<std::ptrdiff_t>(rows.size()); at += step) {
        const Row& row = rows[static_cast<std::size_t>(at)];
        if (row.kind != Row::Kind::Lane) continue;
        const Lane& lane = scene.trace(row.source).lane(row.lane);
        const std::vector<Segment>& segments = scene.segments(row.source);
        if (lane.empty() || segments.empty()) continue;
        int segment = 0;
        for (int i = 0; i < static_cast<int>(segments.size()); ++i)
            if (segments[static_cast<std::size_t>(i)].shown().begin <= shown) segment = i;
        const TimeNs t = shown - segments[static_cast<std::size_t>(segment)].shift;
        const std::size_t after = lane.firstEndingAfter(t);
        const bool within = after < lane.size() && lane.begin(after) <= t;
        if (!within && hasGaps(lane))
            for (const std::size_t neighbour : {after, after - 1}) {
                if (neighbour >= lane.size()) continue;
                if (const Gap* gap = scene.gaps(row.source, lane.step(neighbour)).at(row.rank, t)) return gapItem(scene, row.source, segment, *gap);
            }
        const bool last = after >= lane.size();
        const bool earlier = last || (!within && after > 0 && t - lane.end(after - 1) < lane.begin(after) - t);
        const TimelineItem found = sliceItem(scene, row.source, segment, row.lane, earlier ? after - 1 : after);
        if (!found.none()) return found;
    }
    return {};
}

TimelineItem firstInSight(const TimelineScene& scene, const LaneLayout& layout, TimeNs left)
{
    for (const Row& row : layout.rows()) {
        if (row.kind != Row::Kind::Lane || scene.segments(row.source).empty()) continue;
        const Lane& lane = scene.trace(row.source).lane(row.lane);
        const std::size_t first = lane.firstEndingAfter(left - scene.segments(row.source).front().shift);
        if (first < lane.size()) return sliceItem(scene, row.source, 0, row.lane, first);
    }
    return {};
}

} // namespace stagecraft::ui
