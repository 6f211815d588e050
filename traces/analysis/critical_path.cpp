// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/critical_path.h"

#include "traces/analysis/pauses.h"
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <string>

namespace stagecraft::traces {
namespace {

// Walks from the last end of the step back to its begin. `now_` is the moment up to which the step is explained, from behind.
class Walk {
public:
    Walk(const Trace& trace, Interval span) : trace_(trace), span_(span), now_(span.end), left_(trace.sliceCount() + 1) {}

    std::vector<PathLink> back(SliceRef last)
    {
        SliceRef at = last;
        while (now_ > span_.begin) {
            const std::optional<SliceRef> before = follow(at);
            if (!before) break;
            at = *before;
        }
        std::reverse(links_.begin(), links_.end());
        return std::move(links_);
    }

private:
    // Why a slice began when it did.
    struct Reason {
        SliceRef from{};
        TimeNs at = 0;              // when it was fulfilled
        const Edge* edge = nullptr; // none: the order on the lane
    };

    // Adds the slice, and the way to it from what it waited for. Nothing where it waited for nothing that the trace knows.
    std::optional<SliceRef> follow(SliceRef at)
    {
        const Lane& lane = trace_.lane(at.lane);
        const PathKind kind = kindOf(lane.action(at.index).kind());
        // A receipt on the rank's own lane lasts while the rank stands there: what it waited for may have been made within.
        const TimeNs begin = std::min(lane.begin(at.index), now_);
        const TimeNs settled = kind == PathKind::Transfer ? now_ : begin;
        const std::optional<Reason> reason = reasonOf(at, settled);
        const TimeNs own = reason && reason->edge != nullptr ? std::max(begin, std::min(endOf(reason->from), reason->at)) : begin;
        add(kind, own, at, at, nullptr);
        if (!reason || left_-- == 0) { // a damaged file may lead in a circle
            add(PathKind::Wait, span_.begin, at, at, nullptr);
            return std::nullopt;
        }
        add(PathKind::Wait, reason->at, reason->from, at, nullptr); // everything was there
        const bool data = reason->edge == nullptr || reason->edge->kind == EdgeKind::Data;
        add(data ? PathKind::Transfer : PathKind::Wait, endOf(reason->from), reason->from, at, reason->edge);
        return reason->from;
    }

    // What was fulfilled last before the slice began. What ended later than that is no reason, whatever an edge says, unless it gave
    // something away in its middle: a bucket of gradients is reduced while the backward goes on.
    [[nodiscard]] std::optional<Reason> reasonOf(SliceRef at, TimeNs begin) const
    {
        std::optional<Reason> reason;
        if (inOrder(trace_.lane(at.lane).info().kind) && at.index > 0) {
            const SliceRef before{at.lane, at.index - 1};
            reason = Reason{before, std::min(endOf(before), begin), nullptr};
        }
        const std::vector<Edge>& edges = trace_.edgesOfLane(at.lane);
        auto edge = std::lower_bound(edges.begin(), edges.end(), at.index,
                                     [](const Edge& known, std::uint32_t index) { return known.to.index < index; });
        for (; edge != edges.end() && edge->to.index == at.index; ++edge) {
            const bool within = edge->ready > beginOf(edge->from) && edge->ready < endOf(edge->from);
            if (within ? edge->ready > begin : endOf(edge->from) > begin) continue;
            const TimeNs ready = within ? edge->ready : std::clamp(edge->ready, endOf(edge->from), begin);
            if (!reason || ready > reason->at) reason = Reason{edge->from, ready, &*edge};
        }
        return reason;
    }

    // Explains the time from `begin` on. Empty links are left out, and what lies before the step is cut off.
    void add(PathKind kind, TimeNs begin, SliceRef from, SliceRef to, const Edge* edge)
    {
        begin = std::max(begin, span_.begin);
        if (begin >= now_) return;
        PathLink link{kind, {begin, now_}, 0, {}, {}, from, to, {}};
        const SliceRef owner = kind == PathKind::Wait ? to : from;
        link.rank = trace_.lane(owner.lane).info().rank;
        link.stage = trace_.lane(owner.lane).action(owner.index).stage();
        if (edge != nullptr) link.edge = edge->kind;
        links_.push_back(link);
        now_ = begin;
    }

    // Transfers lie on their lanes wherever there is room; on all others one slice follows the other because it has to.
    static bool inOrder(LaneKind kind) { return kind != LaneKind::Transfer; }
    static PathKind kindOf(ActionKind kind)
    {
        if (isCompute(kind)) return PathKind::Compute;
        return kind == ActionKind::None ? PathKind::Wait : PathKind::Transfer;
    }
    [[nodiscard]] TimeNs beginOf(SliceRef ref) const { return trace_.lane(ref.lane).begin(ref.index); }
    [[nodiscard]] TimeNs endOf(SliceRef ref) const { return trace_.lane(ref.lane).end(ref.index); }

    const Trace& trace_;
    Interval span_;
    TimeNs now_;
    std::size_t left_; // slices that may still be visited
    std::vector<PathLink> links_;
};

PathTimes& timesOf(std::vector<PathTimes>& times, std::int32_t number)
{
    const auto place = static_cast<std::size_t>(std::max(number, 0));
    if (times.size() <= place) times.resize(place + 1);
    return times[place];
}

} // namespace

std::string_view pathKindText(PathKind kind)
{
    switch (kind) {
    case PathKind::Compute: return "compute";
    case PathKind::Transfer: return "transfer";
    case PathKind::Wait: return "wait";
    }
    return "";
}

std::vector<SliceRef> CriticalPath::slices() const
{
    std::vector<SliceRef> all;
    for (const PathLink& link : links)
        if (link.kind == PathKind::Compute) all.push_back(link.from);
    return all;
}

Expected<CriticalPath> criticalPath(const Trace& trace, Step step) { return criticalPath(trace, StepIndex(trace), step); }

Expected<CriticalPath> criticalPath(const Trace& trace, const StepIndex& index, Step step)
{
    const StepView view = viewOf(trace, index, step);
    if (!view.computes) return Error{"step " + std::to_string(step.value) + " of the trace has no computing action"};
    const auto last = std::max_element(view.ranks.begin(), view.ranks.end(), [](const RankView& a, const RankView& b) {
        return a.works != b.works ? b.works : a.span.end < b.span.end;
    });
    CriticalPath path;
    path.step = step;
    path.span = view.span;
    path.links = Walk(trace, view.span).back(last->last);
    const Pauses pauses(trace.pauses());
    for (PathLink& link : path.links) {
        link.length = pauses.running(link.span);
        path.total.add(link.kind, link.length);
        timesOf(path.ranks, link.rank.value).add(link.kind, link.length);
        timesOf(path.stages, link.stage.value).add(link.kind, link.length);
    }
    return path;
}

} // namespace stagecraft::traces
