// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/memory_partition.h"

#include "engine/model/tied.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/old_versions.h"
#include "engine/schedule/weight_versions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace stagecraft::engine {
namespace {

using traces::ActionKind;
using traces::Flow;
using traces::index;
using traces::Work;

// What a stage holds at one moment, in pieces: activations of units, of their weight gradients alone, inputs of those that are computed
// again, gradients of the weights, and further versions of them.
struct Held {
    int whole = 0;
    int forWeights = 0;
    int inputs = 0;
    int gradients = 0;
    int versions = 0;

    [[nodiscard]] bool within(const Held& other) const
    {
        return whole <= other.whole && forWeights <= other.forWeights && inputs <= other.inputs && gradients <= other.gradients &&
               versions <= other.versions;
    }
};

// The moments of one stage that none of the others outdoes in every piece.
class Peaks {
public:
    void note(const Held& held)
    {
        if (std::any_of(most_.begin(), most_.end(), [&](const Held& known) { return held.within(known); })) return;
        std::erase_if(most_, [&](const Held& known) { return known.within(held); });
        most_.push_back(held);
    }
    [[nodiscard]] const std::vector<Held>& moments() const { return most_; }

private:
    std::vector<Held> most_;
};

// One stage of one direction, through its actions.
class StageWalk {
public:
    // `entry`: versionsAtEntry() of the schedule.
    StageWalk(const Schedule& schedule, const std::vector<int>& entry, Peaks& peaks) : old_(schedule, entry), inference_(schedule.inference()), peaks_(peaks)
    {
        now_.versions = old_.first();
    }

    void execute(const Work& work, bool recomputed)
    {
        const bool back = work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad;
        // during the action
        now_.versions += old_.atBegin(work);
        switch (work.kind) {
        case ActionKind::Forward:
            ++(recomputed ? now_.inputs : now_.whole);
            break;
        case ActionKind::Recompute:
        case ActionKind::Reload: ++now_.whole; break;
        default: break;
        }
        if (back) now_.gradients = 1;
        peaks_.note(now_);
        // after it
        switch (work.kind) {
        case ActionKind::Forward: now_.whole -= inference_ ? 1 : 0; break;
        case ActionKind::Backward:
        case ActionKind::InputGrad:
            --now_.whole;
            now_.inputs -= recomputed ? 1 : 0;
            now_.forWeights += work.kind == ActionKind::InputGrad ? 1 : 0;
            break;
        case ActionKind::WeightGrad: --now_.forWeights; break;
        case ActionKind::Offload: --now_.whole; break;
        case ActionKind::Optimizer: now_.gradients = 0; break;
        default: break;
        }
        now_.versions += old_.atEnd(work);
    }

private:
    OldVersions old_;
    bool inference_;
    Peaks& peaks_;
    Held now_;
};

// By stage; of two directions both copies.
std::vector<Peaks> peaksOf(const Schedule& schedule)
{
    using Unit = std::tuple<Flow, Stage, MicroBatch>;
    const auto unitOf = [](const Work& work) { return Unit(work.flow, work.stage, work.microbatch); };
    std::set<Unit> recomputed;
    for (const std::vector<Action>& order : schedule.order)
        for (const Action& action : order)
            if (action.kind() == ActionKind::Recompute) recomputed.insert(unitOf(action.work));

    const std::vector<int> entry = versionsAtEntry(schedule);
    std::vector<Peaks> peaks(static_cast<std::size_t>(schedule.stages()));
    std::map<std::pair<Flow, Stage>, StageWalk> walks;
    for (const Flow flow : schedule.flows())
        for (int s = 0; s < schedule.stages(); ++s) walks.try_emplace({flow, Stage{s}}, schedule, entry, peaks[static_cast<std::size_t>(s)]);
    for (const std::vector<Action>& order : schedule.order)
        for (const Action& action : order) {
            if (traces::isTransfer(action.kind())) continue;
            forEachWork(action, [&](const Work& work) {
                const auto walk = walks.find({work.flow, work.stage});
                if (walk != walks.end()) walk->second.execute(work, !recomputed.empty() && recomputed.contains(unitOf(work)));
            });
        }
    return peaks;
}

// Bytes and FLOPs of neighbouring layers, as differences of sums.
class LayerSums {
public:
    explicit LayerSums(const Plan& plan)
        : fixed_(plan.costs), chunks_(plan.pipeline.chunks), parts_(plan.pipeline.parts()), ofWeight_(valueBytes(plan.run.precision)),
          ofOptimizer_(plan.run.optimizerValues() * kMainBytes)
    {
        parameters_ = activations_ = forWeights_ = flops_ = {0};
        for (const LayerCounts& layer : heldCounts(plan.model, static_cast<std::size_t>(plan.stages()), plan.run.precision)) {
            parameters_.push_back(parameters_.back() + static_cast<double>(layer.parameters));
            activations_.push_back(activations_.back() + static_cast<double>(layer.activationBytes));
            forWeights_.push_back(forWeights_.back() + static_cast<double>(layer.wgradBytes));
            flops_.push_back(flops_.back() + layer.forwardFlops + layer.backwardFlops);
            largestInput_ = std::max(largestInput_, static_cast<double>(layer.outputBytes));
        }
    }
    [[nodiscard]] std::size_t layers() const { return flops_.size() - 1; }
    [[nodiscard]] double flops(std::size_t begin, std::size_t end) const { return flops_[end] - flops_[begin]; }

    [[nodiscard]] double memory(const std::vector<Held>& moments, std::size_t begin, std::size_t end) const
    {
        const double parameters = parameters_[end] - parameters_[begin];
        const double whole = fixed_.activationBytes > 0 ? static_cast<double>(fixed_.activationBytes) / chunks_
                                                        : activations_[end] - activations_[begin];
        const double forWeights = fixed_.wgradBytes > 0 ? static_cast<double>(fixed_.wgradBytes) / chunks_ : forWeights_[end] - forWeights_[begin];
        double most = 0;
        for (const Held& held : moments)
            most = std::max(most, (held.whole * whole + held.forWeights * forWeights + held.inputs * largestInput_) / parts_ +
                                      (held.gradients * kMainBytes + held.versions * ofWeight_) * parameters);
        return most + (ofWeight_ + ofOptimizer_) * parameters;
    }

private:
    CostSpec fixed_;
    double chunks_;
    double parts_;
    double ofWeight_;    // bytes
    double ofOptimizer_; // for each weight
    double largestInput_ = 0; // one for all stages, so that more layers never need less
    std::vector<double> parameters_, activations_, forWeights_, flops_;
};

// The last stage takes as many layers as fit, then the one before it, and so on: whoever takes more leaves less to the others, so this
// finds a partition where there is one. `fits` must not come true again once a stage has become too large.
using Fits = std::function<bool(std::size_t stage, std::size_t begin, std::size_t end)>;
Partition packed(std::size_t layers, std::size_t stages, const Fits& fits)
{
    Partition partition(stages, 0);
    std::size_t end = layers;
    for (std::size_t s = stages; s > 0; --s) {
        std::size_t begin = end;
        while (begin > s - 1 && fits(s - 1, begin - 1, end)) --begin;
        if (begin == end) return {};
        partition[s - 1] = static_cast<int>(end - begin);
        end = begin;
    }
    return end == 0 ? partition : Partition{};
}

// The smallest bound under which packing succeeds; `largest` tells what a partition comes to, and is nothing but sums, so that the bound
// moves from one partition's value to another's.
template <class Pack, class Largest>
Partition smallest(Partition best, double nearness, const Pack& pack, const Largest& largest)
{
    double high = largest(best);
    double low = 0;
    while (high - low > nearness) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        const Partition found = pack(middle);
        if (found.empty()) {
            low = middle;
            continue;
        }
        best = found;
        high = std::min(middle, largest(found));
    }
    return best;
}

template <class Value>
double largestOf(const Partition& partition, const Value& value)
{
    double most = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < partition.size(); ++s) {
        const std::size_t end = begin + static_cast<std::size_t>(partition[s]);
        most = std::max(most, value(s, begin, end));
        begin = end;
    }
    return most;
}

} // namespace

Expected<Partition> memoryPartition(const Plan& plan)
{
    Plan ordered = plan; // families that plan by costs need some partition to begin with
    ordered.partition.clear();
    ordered.partitionRule = PartitionRule::Flops;
    const Expected<Schedule> schedule = scheduleOf(ordered);
    if (!schedule.ok()) return schedule.error();
    const std::vector<Peaks> peaks = peaksOf(schedule.value());
    const LayerSums sums(plan);
    const std::size_t stages = peaks.size();
    const auto memory = [&](std::size_t s, std::size_t begin, std::size_t end) { return sums.memory(peaks[s].moments(), begin, end); };
    const auto flops = [&](std::size_t, std::size_t begin, std::size_t end) { return sums.flops(begin, end); };

    Partition any(stages, 1);
    any.back() = static_cast<int>(sums.layers() - (stages - 1));
    const Partition least = smallest(
        any, 0.5, // bytes
        [&](double bound) {
            return packed(sums.layers(), stages, [&](std::size_t s, std::size_t begin, std::size_t end) { return memory(s, begin, end) <= bound; });
        },
        [&](const Partition& partition) { return largestOf(partition, memory); });
    const double bound = largestOf(least, memory);
    return smallest(
        least, 1e-12 * largestOf(least, flops),
        [&](double most) {
            return packed(sums.layers(), stages, [&](std::size_t s, std::size_t begin, std::size_t end) {
                return memory(s, begin, end) <= bound && flops(s, begin, end) <= most;
            });
        },
        [&](const Partition& partition) { return largestOf(partition, flops); });
}

} // namespace stagecraft::engine
