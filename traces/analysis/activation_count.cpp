// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/activation_count.h"

#include "traces/analysis/replicas.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stagecraft::traces {
namespace {

// Counted in parts so that it stays exact: a rank's micro-batch is v stages of so many slices. In a two-direction schedule a
// micro-batch is in one of the rank's two stages, and counts as a whole.
class ActivationCount {
public:
    explicit ActivationCount(bool inference = false) : inference_(inference) {}
    void change(std::int64_t by) { peak_ = std::max(peak_, live_ += by); }
    void add(const Action& action)
    {
        switch (action.kind()) {
        case ActionKind::Forward:
            change(1);
            if (inference_) change(-1);
            break;
        case ActionKind::Backward:
        case ActionKind::WeightGrad: change(-1); break;
        case ActionKind::Overlap: // both are in memory while they run together
            change(1);
            if (action.partner.kind == ActionKind::Backward) change(-1);
            break;
        default: break;
        }
    }
    [[nodiscard]] std::int64_t peak() const { return peak_; }

private:
    bool inference_;
    std::int64_t live_ = 0;
    std::int64_t peak_ = 0;
};

struct Change {
    TimeNs at = 0;
    std::int64_t by = 0;
};

// The copies of the step that change what the rank holds; own is what its own stages made.
std::vector<Change> copiesOf(const Trace& trace, Rank rank, Step step)
{
    std::vector<Change> changes;
    for (const Lane& lane : trace.lanes()) {
        if (lane.info().kind != LaneKind::Copy || lane.info().rank != rank) continue;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const Work& work = lane.action(i).work;
            if (lane.step(i) != step || (work.kind != ActionKind::Offload && work.kind != ActionKind::Reload)) continue;
            const bool comes = (work.kind == ActionKind::Reload) == isStageOf(trace.info, work, rank);
            changes.push_back({comes ? lane.begin(i) : lane.end(i), comes ? 1 : -1});
        }
    }
    return changes;
}

// By time, for copies run beside the computing. What goes and comes at one moment was never held twice.
std::int64_t peakWithCopies(const Trace& trace, const RankView& rank, std::vector<Change> changes)
{
    for (const SliceRef ref : rank.slices) {
        const Slice slice = trace.slice(ref);
        const ActionKind kind = slice.action.kind();
        if (kind == ActionKind::Forward || kind == ActionKind::Overlap) changes.push_back({slice.begin, 1});
        const bool pairGives = kind == ActionKind::Overlap && slice.action.partner.kind == ActionKind::Backward;
        if (kind == ActionKind::Backward || kind == ActionKind::WeightGrad || pairGives) changes.push_back({slice.end, -1});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.by < b.by; });
    ActivationCount count;
    for (const Change& change : changes) count.change(change.by);
    return count.peak();
}

} // namespace

bool isStageOf(const TraceInfo& info, const Work& work, Rank rank)
{
    const std::vector<Rank>& placement = work.flow == Flow::Up ? info.upStageToRank : info.stageToRank;
    const auto stage = static_cast<std::size_t>(work.stage.value);
    return work.stage.value < 0 || stage >= placement.size() || placement[stage] == rankInReplica(info, rank);
}

double peakActivations(const Trace& trace, const RankView& rank)
{
    const double parts = std::max(trace.info.chunks, 1) * static_cast<double>(std::max(trace.info.slices, 1));
    if (!rank.slices.empty()) {
        const SliceRef first = rank.slices.front();
        std::vector<Change> copies = copiesOf(trace, rank.rank, trace.lane(first.lane).step(first.index));
        if (!copies.empty()) return static_cast<double>(peakWithCopies(trace, rank, std::move(copies))) / parts;
    }
    ActivationCount count(trace.info.inference);
    for (const SliceRef ref : rank.slices) count.add(trace.lane(ref.lane).action(ref.index));
    return static_cast<double>(count.peak()) / parts;
}

} // namespace stagecraft::traces
