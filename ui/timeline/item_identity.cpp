// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/item_identity.h"

#include <algorithm>

namespace stagecraft::ui {

using traces::Gap;
using traces::Lane;
using traces::SliceRef;
using traces::Trace;

namespace {

bool holds(const Trace& trace, SliceRef ref)
{
    return index(ref.lane) < trace.laneCount() && ref.index < trace.lane(ref.lane).size();
}

// Of a rank's gaps those that a slice may bound. They lie before its end; the last slice of the step may bound any of those
// after the slices that began before it, draining among them.
std::span<const Gap> gapsBeside(const Trace& trace, std::span<const Gap> gaps, SliceRef slice)
{
    const traces::TimeNs begin = trace.slice(slice).begin;
    const auto beginOf = [&](const Gap& gap) { return holds(trace, gap.before) ? trace.slice(gap.before).begin : begin; };
    const auto first = std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& gap) { return beginOf(gap) < begin; });
    const auto last = std::partition_point(first, gaps.end(), [&](const Gap& gap) { return beginOf(gap) <= begin; });
    return {first, last};
}

SliceRef anchorOf(const TimelineItem& item) { return item.kind == TimelineItem::Kind::Gap ? item.gap.before : item.slice; }

} // namespace

std::optional<int> segmentHolding(const TimelineScene& scene, int source, traces::TimeNs time, int preferred)
{
    const std::vector<Segment>& segments = scene.segments(source);
    const auto inside = [&](int at) {
        const traces::Interval& span = segments[static_cast<std::size_t>(at)].span;
        return time >= span.begin && time <= span.end;
    };
    const int count = static_cast<int>(segments.size());
    if (preferred >= 0 && preferred < count && inside(preferred)) return preferred;
    for (int i = 0; i < count; ++i)
        if (inside(i)) return i;
    return std::nullopt;
}

ItemIdentity::ItemIdentity(const TimelineScene& scene, const TimelineItem& item)
{
    if (!scene.shownSpan(item)) return;
    const Trace& trace = scene.trace(item.source);
    const SliceRef anchor = anchorOf(item);
    if (!holds(trace, anchor)) return;
    item_ = item;
    role_ = scene.role(item.source);
    trace_ = scene.sources()[static_cast<std::size_t>(item.source)].trace;
    lane_ = trace.lane(anchor.lane).info();
    action_ = trace.slice(anchor).action;
    step_ = trace.slice(anchor).step;
}

std::optional<SliceRef> ItemIdentity::findSlice(const Trace& trace, bool sameTrace) const
{
    const SliceRef known = anchorOf(item_);
    if (sameTrace) return holds(trace, known) ? std::optional(known) : std::nullopt;
    // Kernels of an imported trace have no action to be known by.
    if (action_.kind() == traces::ActionKind::None) return std::nullopt;
    const auto id = trace.findLane(lane_.rank, lane_.kind, lane_.depth);
    if (!id) return std::nullopt;
    const Lane& lane = trace.lane(*id);
    const auto matches = [&](std::size_t i) { return lane.action(i) == action_ && lane.step(i) == step_; };
    if (known.index < lane.size() && matches(known.index)) return SliceRef{*id, known.index};
    for (std::size_t i = 0; i < lane.size(); ++i)
        if (matches(i)) return SliceRef{*id, static_cast<std::uint32_t>(i)};
    return std::nullopt;
}

TimelineItem ItemIdentity::find(const TimelineScene& scene) const
{
    if (item_.none()) return {};
    const std::shared_ptr<const Trace> was = trace_.lock();
    for (int source = 0; source < scene.sourceCount(); ++source) {
        if (scene.role(source) != role_ || scene.segments(source).empty()) continue;
        const Trace& trace = scene.trace(source);
        const auto slice = findSlice(trace, was.get() == &trace);
        if (!slice) continue;
        TimelineItem found = item_;
        found.source = source;
        traces::TimeNs begin = trace.slice(*slice).begin;
        if (item_.kind == TimelineItem::Kind::Slice) {
            found.slice = *slice;
        } else {
            // A gap may have come apart (its transfer is told from its waiting) or have grown: the piece of the same cause
            // before the same block; the very same one where it is still there.
            const std::span<const Gap> gaps = gapsBeside(trace, scene.gaps(source, step_).of(item_.gap.rank), *slice);
            const auto alike = [&](const Gap& gap) { return gap.before == *slice && gap.cause == item_.gap.cause; };
            auto gap = std::find_if(gaps.begin(), gaps.end(), [&](const Gap& g) { return alike(g) && g.span.begin == item_.gap.span.begin; });
            if (gap == gaps.end()) gap = std::find_if(gaps.begin(), gaps.end(), alike);
            if (gap == gaps.end()) continue;
            found.gap = *gap;
            begin = gap->span.begin;
        }
        const auto segment = segmentHolding(scene, source, begin, item_.segment);
        if (!segment) continue;
        found.segment = *segment;
        return found;
    }
    return {};
}

} // namespace stagecraft::ui
