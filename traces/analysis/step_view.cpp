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
        if (!countsForSpan(lane.action(ref.index).kind())) continue;
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
        view.span.begin = std::min(view.span.begin, rank.span.begin);
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
