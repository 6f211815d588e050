// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/slack.h"

#include "traces/analysis/pauses.h"
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

namespace stagecraft::traces {
namespace {

constexpr TimeNs kUnbound = std::numeric_limits<TimeNs>::max(); // nothing that the step waits for comes behind it

// Transfers lie on their lanes wherever there is room; on all others one slice follows the other because it has to.
bool inOrder(LaneKind kind) { return kind != LaneKind::Transfer; }

// What a slice began after, each with the moment from which it was no hindrance.
class Reasons {
public:
    explicit Reasons(const Trace& trace) : trace_(trace) {}

    template <class Visit> // visit(SliceRef from, TimeNs fulfilled)
    void forEach(SliceRef at, Visit&& visit) const
    {
        const Lane& lane = trace_.lane(at.lane);
        const TimeNs begin = lane.begin(at.index);
        if (inOrder(lane.info().kind) && at.index > 0) visit(SliceRef{at.lane, at.index - 1}, lane.end(at.index - 1));
        const std::vector<Edge>& edges = trace_.edgesOfLane(at.lane);
        auto edge = std::lower_bound(edges.begin(), edges.end(), at.index,
                                     [](const Edge& known, std::uint32_t index) { return known.to.index < index; });
        const bool explained = edge != edges.end() && edge->to.index == at.index;
        // a receipt on the rank's own lane lasts while the rank stands there: what it waited for may have been made within
        for (; edge != edges.end() && edge->to.index == at.index; ++edge) {
            const Lane& maker = trace_.lane(edge->from.lane);
            // what was given away in the middle of a slice did not wait for its end (a bucket of gradients)
            const bool within = edge->ready > maker.begin(edge->from.index) && edge->ready < maker.end(edge->from.index);
            visit(edge->from, std::min(begin, within ? edge->ready : std::max(edge->ready, maker.end(edge->from.index))));
        }
        const bool aside = lane.info().kind == LaneKind::Copy || lane.info().kind == LaneKind::Collective;
        if (!explained && aside) forEachBefore(at, begin, visit);
    }

private:
    template <class Visit>
    void forEachBefore(SliceRef at, TimeNs begin, Visit&& visit) const
    {
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) {
            const LaneId id{l};
            const Lane& lane = trace_.lane(id);
            if (id == at.lane || lane.info().rank != trace_.lane(at.lane).info().rank || !inOrder(lane.info().kind)) continue;
            std::size_t ended = 0; // slices that had
            for (std::size_t past = lane.size(); ended < past;) {
                const std::size_t middle = (ended + past) / 2;
                if (lane.end(middle) <= begin) ended = middle + 1;
                else past = middle;
            }
            if (ended > 0) visit(SliceRef{id, static_cast<std::uint32_t>(ended - 1)}, lane.end(ended - 1));
        }
    }

    const Trace& trace_;
};

} // namespace

std::optional<std::size_t> StepSlack::placeOf(SliceRef slice) const
{
    auto run = std::upper_bound(runs_.begin(), runs_.end(), slice, [](SliceRef wanted, const Run& known) {
        return std::tuple(wanted.lane, wanted.index) < std::tuple(known.lane, known.begin);
    });
    if (run == runs_.begin()) return std::nullopt;
    --run;
    if (run->lane != slice.lane || slice.index >= run->end) return std::nullopt;
    return run->first + (slice.index - run->begin);
}

std::optional<TimeNs> StepSlack::of(SliceRef slice) const
{
    const std::optional<std::size_t> place = placeOf(slice);
    return place && slack_[*place] != kUnbound ? std::optional(slack_[*place]) : std::nullopt;
}

Expected<StepSlack> slackOf(const Trace& trace, const StepIndex& index, Step step)
{
    const StepView view = viewOf(trace, index, step);
    if (!view.computes) return Error{"step " + std::to_string(step.value) + " of the trace has no computing action"};

    StepSlack result;
    std::vector<SliceRef> slices; // by place
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        for (std::uint32_t i = 0; i < lane.size(); ++i) {
            if (lane.step(i) != step) continue;
            if (result.runs_.empty() || result.runs_.back().lane != LaneId{l} || result.runs_.back().end != i)
                result.runs_.push_back({LaneId{l}, i, i, slices.size()});
            ++result.runs_.back().end;
            slices.push_back({LaneId{l}, i});
        }
    }
    const Pauses pauses(trace.pauses());
    const Reasons reasons(trace);
    std::vector<TimeNs>& slack = result.slack_;
    std::vector<std::uint32_t> followers(slices.size(), 0); // whose own slack is not known yet
    for (const SliceRef ref : slices) {
        const Lane& lane = trace.lane(ref.lane);
        const bool counts = endsSpan(lane.action(ref.index).kind());
        slack.push_back(counts ? pauses.running({lane.end(ref.index), std::max(view.span.end, lane.end(ref.index))}) : kUnbound);
        reasons.forEach(ref, [&](SliceRef from, TimeNs) {
            if (const auto place = result.placeOf(from)) ++followers[*place];
        });
    }
    // From the end of the step to its begin: a slice's turn comes when all that follow it are done.
    std::vector<std::size_t> ready;
    for (std::size_t place = 0; place < slices.size(); ++place)
        if (followers[place] == 0) ready.push_back(place);
    std::size_t done = 0;
    while (!ready.empty()) {
        const std::size_t at = ready.back();
        ready.pop_back();
        ++done;
        TimeNs last = std::numeric_limits<TimeNs>::min(); // the moment when the last of its reasons was fulfilled
        reasons.forEach(slices[at], [&](SliceRef, TimeNs fulfilled) { last = std::max(last, fulfilled); });
        reasons.forEach(slices[at], [&](SliceRef from, TimeNs fulfilled) {
            const std::optional<std::size_t> place = result.placeOf(from);
            if (!place) return;
            if (slack[at] != kUnbound) slack[*place] = std::min(slack[*place], slack[at] + pauses.running({fulfilled, last}));
            if (--followers[*place] == 0) ready.push_back(*place);
        });
    }
    if (done < slices.size()) // a damaged file may lead in a circle
        for (std::size_t place = 0; place < slices.size(); ++place)
            if (followers[place] > 0) slack[place] = kUnbound;
    return result;
}

} // namespace stagecraft::traces
