// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/held_activations.h"

#include "traces/analysis/activation_count.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace stagecraft::traces {
namespace {

using Unit = std::tuple<Flow, Stage, MicroBatch>;

struct Held {
    Bytes bytes = 0;
    bool forWeightGrad = false;
    bool done = false;
};

Unit unitOf(const Work& work) { return {work.flow, work.stage, work.microbatch}; }

// The two of a pair, each as an action of its own.
template <class Visit>
void forEachPart(const Action& action, Visit&& visit)
{
    Work first = action.work;
    if (first.kind == ActionKind::Overlap) first.kind = ActionKind::Forward;
    visit(first);
    if (action.partner.kind != ActionKind::None) visit(action.partner);
}

void noteEnd(Held& held, ActionKind kind)
{
    if (kind == ActionKind::InputGrad) held.forWeightGrad = true;
    if (kind == ActionKind::Backward || kind == ActionKind::WeightGrad) held.done = true;
}

HeldAtMoment summed(const std::map<Unit, Held>& units, Bytes value)
{
    HeldAtMoment result;
    result.unexplained = value;
    for (const auto& [unit, held] : units) {
        if (held.done || held.bytes <= 0) continue;
        result.held.push_back({std::get<Flow>(unit), std::get<Stage>(unit), std::get<MicroBatch>(unit), held.bytes, held.forWeightGrad});
        result.unexplained -= held.bytes;
    }
    return result;
}

// What an allocator counted. Points of the series and slices are gone through side by side, in the order of time.
std::map<Unit, Held> ofARun(const Trace& trace, const RankView& rank, const MemorySeries& series, TimeNs from, TimeNs moment)
{
    std::map<Unit, Held> units;
    auto point = static_cast<std::size_t>(std::lower_bound(series.time.begin(), series.time.end(), from) - series.time.begin());
    Bytes value = point > 0 ? series.value[point - 1] : 0;
    for (const SliceRef ref : rank.slices) {
        const Slice slice = trace.slice(ref);
        if (slice.begin > moment) break;
        if (!isCompute(slice.action.kind())) continue;
        const TimeNs until = std::min(slice.end, moment);
        while (point < series.time.size() && series.time[point] < slice.begin) value = series.value[point++];
        for (; point < series.time.size() && series.time[point] <= until; ++point) {
            const Bytes change = series.value[point] - value;
            value = series.value[point];
            // while a forward and a backward run together, the one takes and the other gives back
            const bool gives = slice.action.kind() == ActionKind::Overlap && change < 0;
            const Work& work = gives ? slice.action.partner : slice.action.work;
            if (work.microbatch != kNoMicroBatch) units[unitOf(work)].bytes += change;
        }
        if (slice.end <= moment) forEachPart(slice.action, [&](const Work& work) { noteEnd(units[unitOf(work)], work.kind); });
    }
    return units;
}

class Simulated {
public:
    Simulated(const Trace& trace, const RankView& rank) { collect(trace, rank); }

    std::map<Unit, Held> at(const MemorySeries& series, TimeNs moment)
    {
        learn(series);
        std::map<Unit, Held> units;
        for (const Change& change : changes_) {
            if (change.at > moment) break;
            Held& held = units[unitOf(change.work)];
            held.bytes += bytesOf(change.work);
            noteEnd(held, change.work.kind);
        }
        return units;
    }

private:
    struct Change { // a moment at which an action takes or gives back
        TimeNs at = 0;
        Work work;
    };
    using Kind = std::tuple<ActionKind, Flow, Stage>;
    static Kind kindOf(const Work& work) { return {work.kind, work.flow, work.stage}; }

    void collect(const Trace& trace, const RankView& rank)
    {
        for (const SliceRef ref : rank.slices) {
            const Slice slice = trace.slice(ref);
            forEachPart(slice.action, [&](const Work& work) {
                if (work.kind == ActionKind::Forward) changes_.push_back({slice.begin, work});
                if (work.kind == ActionKind::Forward && trace.info.inference)
                    changes_.push_back({slice.end, {ActionKind::Backward, work.flow, work.stage, work.microbatch}}); // lets go like one
                if (work.kind >= ActionKind::Backward && work.kind <= ActionKind::WeightGrad) changes_.push_back({slice.end, work});
            });
        }
        for (const Lane& lane : trace.lanes()) {
            if (lane.info().rank != rank.rank || lane.info().kind != LaneKind::Copy) continue;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const Work& work = lane.action(i).work;
                if (work.kind != ActionKind::Offload && work.kind != ActionKind::Reload) continue;
                // what a rank keeps for another comes with the one and goes with the other
                const bool comes = (work.kind == ActionKind::Reload) == isStageOf(trace.info, work, rank.rank);
                changes_.push_back({comes ? lane.begin(i) : lane.end(i), work});
            }
        }
        std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    }

    // Rounds go on as long as they find something new: what one moment tells is what another lacked.
    void learn(const MemorySeries& series)
    {
        for (bool learnt = true; std::exchange(learnt, false);) {
            for (std::size_t first = 0, last = 0; first < changes_.size(); first = last) {
                const TimeNs now = changes_[first].at;
                Bytes known = 0;
                std::size_t unknown = 0;
                const Work* missing = nullptr;
                for (last = first; last < changes_.size() && changes_[last].at == now; ++last) {
                    const auto found = known_.find(kindOf(changes_[last].work));
                    if (found != known_.end()) known += found->second;
                    else {
                        missing = &changes_[last].work;
                        ++unknown;
                    }
                }
                if (unknown != 1) continue;
                known_[kindOf(*missing)] = series.valueAt(now) - series.valueAt(now - 1) - known;
                learnt = true;
            }
        }
    }

    // Where every moment had two unknowns: what comes goes again.
    [[nodiscard]] Bytes bytesOf(const Work& work) const
    {
        const auto of = [&](ActionKind kind) -> std::optional<Bytes> {
            const auto found = known_.find({kind, work.flow, work.stage});
            return found == known_.end() ? std::nullopt : std::optional(found->second);
        };
        if (const std::optional<Bytes> own = of(work.kind)) return *own;
        const Bytes kept = of(ActionKind::Forward).value_or(-of(ActionKind::Backward).value_or(0));
        switch (work.kind) {
        case ActionKind::Forward:
        case ActionKind::Reload: return kept;
        case ActionKind::Backward:
        case ActionKind::Offload: return -kept;
        case ActionKind::InputGrad: return -kept - of(ActionKind::WeightGrad).value_or(0);
        case ActionKind::WeightGrad: return -kept - of(ActionKind::InputGrad).value_or(-kept);
        default: return 0;
        }
    }

    std::vector<Change> changes_; // by moment
    std::map<Kind, Bytes> known_;
};

} // namespace

HeldAtMoment heldAt(const Trace& trace, const RankView& rank, TimeNs from, TimeNs moment)
{
    const MemorySeries* series = trace.memorySeries(rank.rank, MemoryClass::Activations);
    if (series == nullptr) return {};
    if (trace.info.label == TraceLabel::Simulated) return summed(Simulated(trace, rank).at(*series, moment), series->valueAt(moment));
    return summed(ofARun(trace, rank, *series, from, moment), series->valueAt(moment));
}

} // namespace stagecraft::traces
