// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/gap_causes.h"
#include "traces/analysis/replicas.h"

#include <algorithm>
#include <limits>
#include <span>

namespace stagecraft::traces {
namespace {

bool communicates(ActionKind kind)
{
    return isTransfer(kind) || (kind >= ActionKind::Offload && kind <= ActionKind::AllReduce);
}

class Explainer {
public:
    Explainer(const Trace& trace, const RankView& rank, const std::function<void(const Gap&)>& visit)
        : trace_(trace), rank_(rank), visit_(visit), hasEdges_(trace.edgeCount() > 0)
    {
    }

    void emit(Interval span, GapCause cause, SliceRef before) const
    {
        if (span.end > span.begin) visit_({.rank = rank_.rank, .span = span, .cause = cause, .before = before});
    }

    void emitWait(Interval span, GapCause cause, SliceRef producer, SliceRef before) const
    {
        if (span.end <= span.begin) return;
        visit_({.rank = rank_.rank,
                .span = span,
                .cause = cause,
                .stage = trace_.lane(producer.lane).action(producer.index).stage(),
                .producer = producer,
                .before = before});
    }

    // `passed` are the slices of the rank that lie in the run without computing.
    void explain(Interval run, std::span<const SliceRef> passed, SliceRef before) const
    {
        const Needs needs = needsOf(passed, before);
        TimeNs cursor = run.begin;
        if (needs.data != nullptr) {
            const SliceRef producer = needs.data->from;
            const TimeNs finished = std::clamp(producerEnd(*needs.data), cursor, run.end);
            const TimeNs arrived = std::clamp(needs.data->ready, finished, run.end);
            emitWait({cursor, finished}, GapCause::WaitForStage, producer, before);
            emitWait({finished, arrived}, GapCause::Transfer, producer, before);
            cursor = arrived;
        }
        if (needs.memory != nullptr) {
            const TimeNs free = std::clamp(needs.memory->ready, cursor, run.end);
            emit({cursor, free}, GapCause::Memory, before);
            cursor = free;
        }
        const GapCause rest = restCause(before, needs.any);
        for (const SliceRef ref : passed) {
            const Lane& lane = trace_.lane(ref.lane);
            if (!communicates(lane.action(ref.index).kind())) continue;
            const TimeNs begin = std::clamp(lane.begin(ref.index), cursor, run.end);
            const TimeNs end = std::clamp(lane.end(ref.index), begin, run.end);
            emit({cursor, begin}, rest, before);
            emitWait({begin, end}, GapCause::Transfer, ref, before);
            cursor = end;
        }
        emit({cursor, run.end}, rest, before);
    }

private:
    // The edges that bind: of each kind the one that was fulfilled last.
    struct Needs {
        const Edge* data = nullptr;
        const Edge* memory = nullptr;
        bool any = false;
    };

    [[nodiscard]] Needs needsOf(std::span<const SliceRef> passed, SliceRef before) const
    {
        Needs needs;
        for (const SliceRef ref : passed) collect(needs, ref);
        collect(needs, before);
        return needs;
    }

    void collect(Needs& needs, SliceRef to) const
    {
        const std::vector<Edge>& edges = trace_.edgesOfLane(to.lane);
        const auto first = std::lower_bound(edges.begin(), edges.end(), to.index,
                                            [](const Edge& edge, std::uint32_t index) { return edge.to.index < index; });
        for (auto edge = first; edge != edges.end() && edge->to.index == to.index; ++edge) {
            needs.any = true;
            if (edge->kind == EdgeKind::Data && (needs.data == nullptr || edge->ready > needs.data->ready))
                needs.data = &*edge;
            if (edge->kind == EdgeKind::Memory && (needs.memory == nullptr || edge->ready > needs.memory->ready))
                needs.memory = &*edge;
        }
    }

    // A producer that is itself a hand-off began when the computing before it was done. A copy or a collective beside the computing
    // waits for nothing but others of its lane, so that all of the wait is theirs.
    [[nodiscard]] TimeNs producerEnd(const Edge& edge) const
    {
        const SliceRef producer = edge.from;
        const Lane& lane = trace_.lane(producer.lane);
        if (lane.info().kind == LaneKind::Copy || lane.info().kind == LaneKind::Collective) return std::numeric_limits<TimeNs>::min();
        const TimeNs begin = lane.begin(producer.index);
        if (isTransfer(lane.action(producer.index).kind())) return begin;
        // in its middle it may have given away what it had until then, as a backward does with a bucket of gradients
        return edge.ready > begin ? std::min(lane.end(producer.index), edge.ready) : lane.end(producer.index);
    }

    // Everything was there. A simulator has no host that could be late, so there it stays unexplained.
    [[nodiscard]] GapCause restCause(SliceRef before, bool hasNeeds) const
    {
        if (trace_.info.label == TraceLabel::Simulated) return GapCause::Unexplained;
        return hasNeeds || (hasEdges_ && dependsOnItsRankOnly(before)) ? GapCause::HostOverhead : GapCause::Unexplained;
    }

    [[nodiscard]] bool dependsOnItsRankOnly(SliceRef ref) const
    {
        const Work& work = trace_.lane(ref.lane).action(ref.index).work;
        switch (work.kind) {
        case ActionKind::WeightGrad:
        case ActionKind::Recompute:
        case ActionKind::Optimizer: return true;
        case ActionKind::Forward: return isHere(work.flow, work.stage.value - 1);
        case ActionKind::Backward:
        case ActionKind::InputGrad: return isHere(work.flow, work.stage.value + 1);
        default: return false;
        }
    }

    // Whether the stage is on this rank, or beyond the ends of the pipeline.
    [[nodiscard]] bool isHere(Flow flow, int stage) const
    {
        const std::vector<Rank>& place = flow == Flow::Up ? trace_.info.upStageToRank : trace_.info.stageToRank;
        if (place.empty()) return false;
        if (stage < 0 || static_cast<std::size_t>(stage) >= place.size()) return true;
        return place[static_cast<std::size_t>(stage)] == rankInReplica(trace_.info, rank_.rank);
    }

    const Trace& trace_;
    const RankView& rank_;
    const std::function<void(const Gap&)>& visit_;
    bool hasEdges_;
};

} // namespace

void forEachGap(const Trace& trace, const StepView& view, const RankView& rank, const std::function<void(const Gap&)>& visit)
{
    const Explainer explainer(trace, rank, visit);
    const TimeNs gathers = rank.gather ? trace.lane(rank.gather->lane).begin(rank.gather->index) : rank.span.begin;
    explainer.emit({view.span.begin, gathers}, GapCause::Filling, rank.first);
    if (rank.gather) explainer.emitWait({gathers, rank.span.begin}, GapCause::Transfer, *rank.gather, rank.first);
    if (!rank.works) return;

    const std::span<const SliceRef> slices(rank.slices);
    TimeNs cursor = rank.span.begin;
    std::size_t passed = 0; // first slice since the last computing one
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const Lane& lane = trace.lane(slices[i].lane);
        if (!isCompute(lane.action(slices[i].index).kind())) continue;
        if (lane.begin(slices[i].index) > cursor)
            explainer.explain({cursor, lane.begin(slices[i].index)}, slices.subspan(passed, i - passed), slices[i]);
        cursor = std::max(cursor, lane.end(slices[i].index));
        passed = i + 1;
    }
    if (rank.span.end > cursor) explainer.explain({cursor, rank.span.end}, slices.subspan(passed), rank.last);
    explainer.emit({rank.span.end, view.span.end}, GapCause::Draining, rank.last);
}

} // namespace stagecraft::traces
