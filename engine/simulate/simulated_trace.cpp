// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/simulated_trace.h"

#include "engine/schedule/old_versions.h"
#include "engine/schedule/weight_versions.h"
#include "engine/simulate/slice_parts.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

using traces::EdgeKind;
using traces::LaneId;
using traces::LaneKind;
using traces::MemoryClass;
using traces::SliceRef;
using traces::Trace;
using traces::Work;

constexpr std::size_t kNoSeries = static_cast<std::size_t>(-1);

// Writes one rank from its first action to its last. Compute lanes are numbered as the ranks are.
class RankWriter {
public:
    RankWriter(const Schedule& schedule, const CostTable& costs, const Timing& timing, const std::vector<int>& entry, Trace& trace, Rank rank)
        : schedule_(schedule), costs_(costs), timing_(timing), shape_(timing.shape()), trace_(trace), rank_(rank),
          order_(schedule.order[index(rank)]),
          inference_(trace.info.inference), gradientHeld_(2 * costs.stages.size(), false), stepped_(2 * costs.stages.size(), false)
    {
        if (schedule.asynchronous()) old_.assign(costs.stages.size(), OldVersions(schedule, entry));
    }

    void write()
    {
        openMemory();
        for (std::size_t i = 0; i < order_.size(); ++i) execute(order_[i], timing_.begin(index(rank_), i));
        optimizerStep();
    }

private:
    // Weights and optimizer state are there from the start; series without bytes are left out.
    void openMemory()
    {
        Bytes weights = 0;
        Bytes gradients = 0;
        Bytes optimizer = 0;
        Bytes activations = 0;
        forEachOwnStage([&](Flow, const StageCosts& stage, std::size_t) {
            weights += stage.weightBytes;
            gradients += stage.gradientBytes;
            optimizer += stage.optimizerBytes;
            activations += stage.activationBytes;
        });
        if (weights > 0) trace_.addMemory(rank_, MemoryClass::Weights, 0, weights);
        if (!old_.empty()) changeVersions(0, old_.front().first() * weights);
        if (optimizer > 0) trace_.addMemory(rank_, MemoryClass::Optimizer, 0, optimizer);
        if (gradients > 0) {
            gradientSeries_ = trace_.memoryIndex(rank_, MemoryClass::Gradients);
            trace_.addMemory(gradientSeries_, 0, 0);
        }
        if (activations > 0) {
            activationSeries_ = trace_.memoryIndex(rank_, MemoryClass::Activations);
            trace_.reserveMemory(activationSeries_, order_.size() + 1);
            trace_.addMemory(activationSeries_, 0, 0);
        }
    }

    void execute(const Action& action, TimeNs begin)
    {
        if (!traces::isCompute(action.kind())) {
            hasMade(action.work, begin);
            return;
        }
        const TimeNs end = begin + timing_.duration(action);
        const SliceRef slice = trace_.append(lane(rank_), {begin, end, action, traces::Step{0}, {}});
        clock_ = end;
        forEachWork(action, [&](const Work& work) {
            everyNeed(shape_, work, [&](const Milestone& need) {
                // an own forward is told by the rank's order; only the turn at the last stage is a hand-off
                if (need.stage == work.stage && need.stage.value + 1 != shape_.stages && isDone(need.fact)) return true;
                const Arrival arrival = timing_.arrival(rank_, need);
                trace_.addEdge({EdgeKind::Data, {lane(arrival.from), arrival.slice}, slice, arrival.at});
                return true;
            });
        });
        forEachWork(action, [&](const Work& work) {
            account(work, begin, end);
            hasMade(work, end);
        });
    }

    // A transfer, where what was made goes to another rank.
    void hasMade(const Work& work, TimeNs at)
    {
        if (costs_.transfer == 0) return;
        const std::optional<Milestone> gain = gainOf(work);
        if (!gain) return;
        const bool sent = gain->fact == Fact::ForwardSent || gain->fact == Fact::BackwardSent;
        if (shape_.communicates ? !sent : !isDone(gain->fact)) return;
        const bool ahead = gain->fact == Fact::ForwardDone || gain->fact == Fact::ForwardSent;
        const std::int32_t neighbour = gain->stage.value + (ahead ? 1 : -1);
        if (neighbour < 0 || neighbour >= shape_.stages) return;
        if (!sent && shape_.rank(gain->flow, Stage{neighbour}) == rank_) return;
        const ActionKind kind = ahead ? ActionKind::SendForward : ActionKind::SendBackward;
        trace_.append(freeTransferLane(at),
                      {at, at + costs_.transfer, traces::makeAction(kind, gain->stage, gain->microbatch, gain->flow), {}, {}});
    }

    LaneId freeTransferLane(TimeNs at)
    {
        for (const LaneId lane : transferLanes_)
            if (trace_.lane(lane).lastEnd() <= at) return lane;
        const auto depth = static_cast<std::int32_t>(transferLanes_.size());
        transferLanes_.push_back(trace_.addLane({rank_, LaneKind::Transfer, depth,
                                                 fmt::format("rank {} sends{}", rank_.value, depth == 0 ? "" : fmt::format(" ({})", depth + 1))}));
        return transferLanes_.back();
    }

    void account(const Work& work, TimeNs begin, TimeNs end)
    {
        const StageCosts& stage = costs_.stages[index(work.stage)];
        const Bytes kept = partOf(costs_.sliceSize, stage.activationBytes, work.microbatch);
        const Bytes keptForW = partOf(costs_.sliceSize, stage.wgradBytes, work.microbatch);
        if (!old_.empty()) changeVersions(begin, old_[index(work.stage)].atBegin(work) * stage.weightBytes);
        switch (work.kind) {
        case ActionKind::Forward:
            changeActivations(begin, kept);
            if (inference_) changeActivations(end, -kept);
            break;
        case ActionKind::Backward: changeActivations(end, -kept); break;
        case ActionKind::InputGrad: changeActivations(end, keptForW - kept); break;
        case ActionKind::WeightGrad: changeActivations(end, -keptForW); break;
        case ActionKind::Optimizer:
            stepped_[copyOf(work)] = true;
            letGradientGo(work, end);
            break;
        default: return;
        }
        if (!old_.empty()) changeVersions(end, old_[index(work.stage)].atEnd(work) * stage.weightBytes);
        if (work.kind != ActionKind::Backward && work.kind != ActionKind::WeightGrad) return;
        if (!gradientHeld_[copyOf(work)] && gradientSeries_ != kNoSeries) {
            gradientHeld_[copyOf(work)] = true;
            gradients_ += stage.gradientBytes;
            trace_.addMemory(gradientSeries_, begin, gradients_);
        }
    }

    void letGradientGo(const Work& update, TimeNs at)
    {
        if (!gradientHeld_[copyOf(update)]) return;
        gradientHeld_[copyOf(update)] = false;
        gradients_ -= costs_.stages[index(update.stage)].gradientBytes;
        trace_.addMemory(gradientSeries_, at, gradients_);
    }

    // Of the weights, beside the newest.
    void changeVersions(TimeNs at, Bytes bytes)
    {
        if (bytes == 0) return;
        if (versionSeries_ == kNoSeries) {
            versionSeries_ = trace_.memoryIndex(rank_, MemoryClass::Versions);
            trace_.addMemory(versionSeries_, 0, 0);
        }
        versions_ += bytes;
        trace_.addMemory(versionSeries_, at, versions_);
    }

    void changeActivations(TimeNs at, Bytes bytes)
    {
        if (activationSeries_ == kNoSeries || bytes == 0) return;
        activations_ += bytes;
        trace_.addMemory(activationSeries_, at, activations_);
    }

    // Each rank updates its stages right after its last action, unless the schedule said when: nothing of another rank is
    // needed for it.
    void optimizerStep()
    {
        forEachOwnStage([&](Flow flow, const StageCosts& stage, std::size_t s) {
            const Action action = traces::makeAction(ActionKind::Optimizer, Stage{s}, traces::kNoMicroBatch, flow);
            if (stage.optimizer > 0 && !stepped_[copyOf(action.work)]) {
                const TimeNs end = clock_ + timing_.duration(action);
                trace_.append(lane(rank_), {clock_, end, action, {}, {}});
                clock_ = end;
            }
            letGradientGo(action.work, clock_);
        });
    }

    // visit(flow, costs, stage) for all that the rank holds; of two directions, each has weights of its own.
    template <class Visit>
    void forEachOwnStage(Visit&& visit) const
    {
        for (const Flow flow : schedule_.flows())
            for (std::size_t s = 0; s < costs_.stages.size(); ++s)
                if (schedule_.rankOf(flow, Stage{s}) == rank_) visit(flow, costs_.stages[s], s);
    }
    [[nodiscard]] std::size_t copyOf(const Work& work) const
    {
        return index(work.stage) + (work.flow == Flow::Up ? costs_.stages.size() : 0);
    }

    static bool isDone(Fact fact) { return fact == Fact::ForwardDone || fact == Fact::BackwardDone; }
    static LaneId lane(Rank rank) { return LaneId{rank.value}; }

    const Schedule& schedule_;
    const CostTable& costs_;
    const Timing& timing_;
    const ScheduleShape& shape_;
    Trace& trace_;
    Rank rank_;
    const std::vector<Action>& order_;
    TimeNs clock_ = 0;
    Bytes activations_ = 0;
    Bytes gradients_ = 0;
    Bytes versions_ = 0;
    bool inference_;
    std::size_t activationSeries_ = kNoSeries;
    std::size_t gradientSeries_ = kNoSeries;
    std::size_t versionSeries_ = kNoSeries;
    std::vector<OldVersions> old_;      // asynchronous: by stage
    std::vector<bool> gradientHeld_;    // by stage and direction
    std::vector<bool> stepped_;         // the same: its optimizer
    std::vector<LaneId> transferLanes_; // one per transfer in flight at the same time
};

} // namespace

traces::TraceInfo simulatedInfo(const Schedule& schedule, const CostTable& costs)
{
    traces::TraceInfo info;
    info.label = traces::TraceLabel::Simulated;
    info.clock = traces::ClockKind::Virtual;
    info.title = fmt::format("{}, {}, {}", schedule.name, traces::counted(schedule.ranks, "rank"),
                             traces::counted(schedule.microbatches, "micro-batch"));
    info.schedule = schedule.name;
    info.ranks = schedule.ranks;
    info.chunks = schedule.chunks;
    info.microbatches = schedule.microbatches;
    info.stageToRank = schedule.stageToRank;
    info.slices = schedule.slices;
    info.upStageToRank = schedule.upStageToRank;
    info.memoryLimit = costs.machine.memory;
    info.inference = schedule.inference();
    return info;
}

std::optional<Trace> simulatedTrace(const Schedule& schedule, const CostTable& costs, const Timing& timing, const std::stop_token& stop)
{
    Trace trace;
    trace.info = simulatedInfo(schedule, costs);
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        trace.reserveEdges(trace.addLane({Rank{r}, LaneKind::Compute, 0, fmt::format("rank {}", r)}), schedule.order[r].size());
    const std::vector<int> entry = versionsAtEntry(schedule);
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        if (stop.stop_requested()) return std::nullopt;
        RankWriter(schedule, costs, timing, entry, trace, Rank{r}).write();
    }
    trace.addStep({traces::Step{0}, trace.extent(), std::nullopt});
    return trace;
}

} // namespace stagecraft::engine
