// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <limits>

namespace stagecraft::traces {
namespace {

RankView& rankView(StepView& view, Rank rank, LaneId lane)
{
    const auto at = std::lower_bound(view.ranks.begin(), view.ranks.end(), rank,
                                     [](const RankView& known, Rank wanted) { return known.rank < wanted; });
    if (at != view.ranks.end() && at->rank == rank) return *at;
    RankView fresh;
    fresh.rank = rank;
    fresh.lane = lane;
    return *view.ranks.insert(at, std::move(fresh));
}

void findSpan(const Trace& trace, RankView& rank)
{
    for (const SliceRef ref : rank.slices) {
        const Lane& lane = trace.lane(ref.lane);
        const ActionKind kind = lane.action(ref.index).kind();
        if (!(rank.works ? endsSpan(kind) : beginsSpan(kind))) continue;
        if (!rank.works) {
            rank.works = true;
            rank.first = rank.last = ref;
            rank.span = {lane.begin(ref.index), lane.end(ref.index)};
        } else if (lane.end(ref.index) >= rank.span.end) {
            rank.last = ref;
            rank.span.end = lane.end(ref.index);
        }
    }
}

// The gather of weights after which a rank's first slice could begin, with nothing else that came later; and of gathers right behind
// each other the first.
std::optional<SliceRef> gatherBefore(const Trace& trace, SliceRef first)
{
    const Edge* latest = nullptr;
    const std::vector<Edge>& edges = trace.edgesOfLane(first.lane);
    auto edge = std::lower_bound(edges.begin(), edges.end(), first.index, [](const Edge& known, std::uint32_t index) { return known.to.index < index; });
    for (; edge != edges.end() && edge->to.index == first.index; ++edge) {
        if (edge->kind != EdgeKind::Data) continue;
        const bool gathers = trace.lane(edge->from.lane).action(edge->from.index).kind() == ActionKind::Unshard;
        if (latest == nullptr || edge->ready > latest->ready || (edge->ready == latest->ready && !gathers)) latest = &*edge;
    }
    if (latest == nullptr) return std::nullopt;
    const Step step = trace.lane(first.lane).step(first.index);
    const TimeNs begin = trace.lane(first.lane).begin(first.index);
    const Lane& lane = trace.lane(latest->from.lane);
    const auto gathersAt = [&](std::uint32_t i) { return lane.action(i).kind() == ActionKind::Unshard && lane.step(i) == step; };
    SliceRef gather = latest->from;
    if (!gathersAt(gather.index) || lane.begin(gather.index) >= begin) return std::nullopt;
    while (gather.index > 0 && gathersAt(gather.index - 1) && lane.end(gather.index - 1) == lane.begin(gather.index)) --gather.index;
    return gather;
}

} // namespace

StepView viewOf(const Trace& trace, const StepIndex& index, Step step)
{
    StepView view;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const LaneId id{l};
        const Lane& lane = trace.lane(id);
        if (!isLaneOfWork(lane.info().kind)) continue;
        RankView& rank = rankView(view, lane.info().rank, id);
        const auto before = static_cast<std::ptrdiff_t>(rank.slices.size());
        for (const StepIndex::Run& run : index.runs(id, step)) {
            for (std::uint32_t i = run.begin; i < run.end; ++i) {
                rank.slices.push_back({id, i});
                view.computes = view.computes || isCompute(lane.action(i).kind());
            }
        }
        std::inplace_merge(
            rank.slices.begin(), rank.slices.begin() + before, rank.slices.end(),
            [&](SliceRef a, SliceRef b) { return trace.lane(a.lane).begin(a.index) < trace.lane(b.lane).begin(b.index); });
    }

    view.span = {std::numeric_limits<TimeNs>::max(), std::numeric_limits<TimeNs>::min()};
    for (RankView& rank : view.ranks) {
        findSpan(trace, rank);
        if (!rank.works) continue;
        rank.gather = gatherBefore(trace, rank.first);
        view.span.begin = std::min(view.span.begin, rank.gather ? trace.lane(rank.gather->lane).begin(rank.gather->index) : rank.span.begin);
        view.span.end = std::max(view.span.end, rank.span.end);
    }
    if (view.span.end < view.span.begin) view.span = {};
    for (RankView& rank : view.ranks) {
        if (rank.works) continue;
        rank.span = {view.span.end, view.span.end};
        rank.first = rank.last = SliceRef{rank.lane, 0};
    }
    return view;
}

TimeNs busyTime(const Trace& trace, const RankView& rank, const Pauses& pauses)
{
    TimeNs busy = 0;
    TimeNs done = std::numeric_limits<TimeNs>::min();
    for (const SliceRef ref : rank.slices) {
        const Lane& lane = trace.lane(ref.lane);
        if (!isCompute(lane.action(ref.index).kind())) continue;
        const Interval fresh{std::max(lane.begin(ref.index), done), lane.end(ref.index)};
        if (fresh.end <= fresh.begin) continue;
        busy += pauses.running(fresh);
        done = fresh.end;
    }
    return busy;
}

} // namespace stagecraft::traces
