// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/simulate.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/jitter.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stagecraft::engine {
namespace {

using traces::EdgeKind;
using traces::LaneId;
using traces::LaneKind;
using traces::MemoryClass;
using traces::SliceRef;
using traces::Trace;
using traces::Work;

constexpr TimeNs kNever = -1;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// A milestone that was reached: when, and by which slice.
struct Reached {
    TimeNs at = kNever;
    std::uint32_t slice = 0;
};

// What an action needed: the milestone's slot, where its slice lies, when the rank had it.
struct Input {
    LaneId lane{};
    std::uint32_t slice = 0;
    TimeNs arrival = 0;
};

struct RankState {
    std::size_t position = 0;
    std::size_t blockedOn = kNowhere; // slot
    TimeNs clock = 0;
    Bytes activations = 0;
    Bytes gradients = 0;
    std::size_t activationSeries = kNowhere;
    std::size_t gradientSeries = kNowhere;
    std::vector<LaneId> transferLanes; // one per transfer in flight at the same time
};

class Simulation {
public:
    Simulation(const Schedule& schedule, const CostTable& costs)
        : schedule_(schedule), costs_(costs), shape_(schedule, hasCommunication(schedule)),
          reached_((shape_.communicates ? kFactCount : 2) * shape_.factSlots()), ranks_(schedule.order.size())
    {
        describe();
        openMemory();
    }

    // False when ranks wait for ever, or when it was told to stop.
    bool run(const std::stop_token& stop)
    {
        std::vector<std::size_t> ready;
        for (std::size_t r = ranks_.size(); r-- > 0;) ready.push_back(r);
        while (!ready.empty() && !stop.stop_requested()) {
            const std::size_t r = ready.back();
            ready.pop_back();
            while (ranks_[r].position < schedule_.order[r].size() && step(r, ready)) ++ranks_[r].position;
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            if (ranks_[r].position < schedule_.order[r].size()) return false;
        for (std::size_t r = 0; r < ranks_.size(); ++r) optimizerStep(r);
        trace_.addStep({traces::Step{0}, trace_.extent(), std::nullopt});
        return true;
    }

    Trace take() { return std::move(trace_); }

private:
    void describe()
    {
        trace_.info.label = traces::TraceLabel::Simulated;
        trace_.info.clock = traces::ClockKind::Virtual;
        trace_.info.title = fmt::format("{}, {} ranks, {} micro-batches", schedule_.name, schedule_.ranks, schedule_.microbatches);
        trace_.info.schedule = schedule_.name;
        trace_.info.ranks = schedule_.ranks;
        trace_.info.chunks = schedule_.chunks;
        trace_.info.microbatches = schedule_.microbatches;
        trace_.info.stageToRank = schedule_.stageToRank;
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            trace_.reserveEdges(trace_.addLane({Rank{r}, LaneKind::Compute, 0, fmt::format("rank {}", r)}),
                                schedule_.order[r].size());
    }

    // Weights and optimizer state are there from the start; series without bytes are left out.
    void openMemory()
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            Bytes weights = 0;
            Bytes gradients = 0;
            Bytes optimizer = 0;
            Bytes activations = 0;
            for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
                if (schedule_.stageToRank[s] != Rank{r}) continue;
                weights += costs_.stages[s].weightBytes;
                gradients += costs_.stages[s].gradientBytes;
                optimizer += costs_.stages[s].optimizerBytes;
                activations += costs_.stages[s].activationBytes;
            }
            if (weights > 0) trace_.addMemory(Rank{r}, MemoryClass::Weights, 0, weights);
            if (optimizer > 0) trace_.addMemory(Rank{r}, MemoryClass::Optimizer, 0, optimizer);
            if (gradients > 0) {
                ranks_[r].gradientSeries = trace_.memoryIndex(Rank{r}, MemoryClass::Gradients);
                trace_.addMemory(ranks_[r].gradientSeries, 0, 0);
            }
            if (activations > 0) {
                ranks_[r].activationSeries = trace_.memoryIndex(Rank{r}, MemoryClass::Activations);
                trace_.reserveMemory(ranks_[r].activationSeries, schedule_.order[r].size() + 1);
                trace_.addMemory(ranks_[r].activationSeries, 0, 0);
            }
        }
        gradientHeld_.assign(costs_.stages.size(), false);
        stepped_.assign(costs_.stages.size(), false);
    }

    [[nodiscard]] TimeNs duration(const Action& action) const
    {
        const StageCosts& stage = costs_.stages[index(action.stage())];
        TimeNs time = 0;
        switch (action.kind()) {
        case ActionKind::Forward: time = stage.forward; break;
        case ActionKind::Backward: time = stage.backward; break;
        case ActionKind::InputGrad: time = stage.inputGrad; break;
        case ActionKind::WeightGrad: time = stage.weightGrad; break;
        case ActionKind::Overlap: time = stage.overlap; break;
        case ActionKind::Recompute: time = stage.forward; break;
        case ActionKind::Optimizer: time = stage.optimizer; break;
        default: return 0;
        }
        if (costs_.jitter > 0)
            time = static_cast<TimeNs>(std::llround(static_cast<double>(time) * jitterFactor(costs_.jitter, costs_.seed, action.work)));
        return time;
    }

    // A receipt takes no time of its rank here: what it brings is there when the other side's SEND plus the transfer is.
    [[nodiscard]] static Milestone source(const Milestone& need)
    {
        if (need.fact == Fact::ForwardArrived) return {Fact::ForwardSent, Stage{need.stage.value - 1}, need.microbatch};
        if (need.fact == Fact::BackwardArrived) return {Fact::BackwardSent, Stage{need.stage.value + 1}, need.microbatch};
        return need;
    }

    // Everything that the action waits for, with the moment at which the rank has it. False when something is not there.
    bool gather(std::size_t r, const Work& work, TimeNs& begin)
    {
        for (const Milestone& wanted : needsOf(shape_, work)) {
            const Milestone need = source(wanted);
            const std::size_t at = slot(shape_, need);
            const Reached& reached = reached_[at];
            if (reached.at == kNever) {
                ranks_[r].blockedOn = at;
                return false;
            }
            const Rank from = rankOf(shape_, need);
            const TimeNs arrival = reached.at + (from == Rank{r} ? 0 : costs_.transfer);
            begin = std::max(begin, arrival);
            // an own forward is told by the rank's order; only the turn at the last stage is a hand-off
            if (need.stage != work.stage || need.stage.value + 1 == shape_.stages)
                inputs_[inputCount_++] = {LaneId{from.value}, reached.slice, arrival};
        }
        return true;
    }

    bool step(std::size_t r, std::vector<std::size_t>& ready)
    {
        RankState& rank = ranks_[r];
        const Action& action = schedule_.order[r][rank.position];
        if (action.kind() == ActionKind::RecvForward || action.kind() == ActionKind::RecvBackward) return true;
        inputCount_ = 0;
        TimeNs begin = rank.clock;
        if (action.kind() != ActionKind::Overlap) {
            if (!gather(r, action.work, begin)) return false;
            execute(r, action, begin, ready);
            return true;
        }
        bool there = true;
        forEachWork(action, [&](const Work& work) { there = there && gather(r, work, begin); });
        if (there) execute(r, action, begin, ready);
        return there;
    }

    void execute(std::size_t r, const Action& action, TimeNs begin, std::vector<std::size_t>& ready)
    {
        if (!traces::isCompute(action.kind())) {
            // SEND: the slice that made it is what the receiver's edge names
            const Milestone made{action.kind() == ActionKind::SendForward ? Fact::ForwardDone : Fact::BackwardDone,
                                 action.stage(), action.microbatch()};
            const bool sends = action.kind() == ActionKind::SendForward || action.kind() == ActionKind::SendBackward;
            reach(action.work, begin, sends ? reached_[slot(shape_, made)].slice : 0, ready);
            return;
        }
        RankState& rank = ranks_[r];
        const TimeNs end = begin + duration(action);
        const SliceRef slice = trace_.append(LaneId{r}, {begin, end, action, traces::Step{0}, {}});
        for (std::size_t k = 0; k < inputCount_; ++k)
            trace_.addEdge({EdgeKind::Data, {inputs_[k].lane, inputs_[k].slice}, slice, inputs_[k].arrival});
        rank.clock = end;
        if (action.kind() == ActionKind::Optimizer) stepped_[index(action.stage())] = true;
        if (action.kind() != ActionKind::Overlap) {
            account(rank, action.work, begin, end);
            reach(action.work, end, slice.index, ready);
            return;
        }
        forEachWork(action, [&](const Work& work) {
            account(rank, work, begin, end);
            reach(work, end, slice.index, ready);
        });
    }

    void reach(const Work& work, TimeNs at, std::uint32_t slice, std::vector<std::size_t>& ready)
    {
        const std::optional<Milestone> gain = gainOf(work);
        if (!gain) return;
        const std::size_t place = slot(shape_, *gain);
        reached_[place] = {at, slice};
        const bool ahead = gain->fact == Fact::ForwardDone || gain->fact == Fact::ForwardSent;
        const std::int32_t neighbour = gain->stage.value + (ahead ? 1 : -1);
        if (neighbour < 0 || neighbour >= shape_.stages) return;
        const Rank to = shape_.stageToRank[neighbour];
        if (costs_.transfer > 0) {
            const Rank from = shape_.stageToRank[index(gain->stage)];
            const bool sent = gain->fact == Fact::ForwardSent || gain->fact == Fact::BackwardSent;
            if (shape_.communicates ? sent : to != from) transferSlice(from, ahead, *gain, at);
        }
        RankState& waiter = ranks_[index(to)];
        if (waiter.blockedOn == place) {
            waiter.blockedOn = kNowhere;
            ready.push_back(index(to));
        }
    }

    void transferSlice(Rank from, bool ahead, const Milestone& what, TimeNs begin)
    {
        std::vector<LaneId>& lanes = ranks_[index(from)].transferLanes;
        auto lane = std::find_if(lanes.begin(), lanes.end(), [&](LaneId id) {
            return trace_.lane(id).empty() || trace_.lane(id).lastEnd() <= begin;
        });
        if (lane == lanes.end()) {
            const auto depth = static_cast<std::int32_t>(lanes.size());
            lanes.push_back(trace_.addLane(
                {from, LaneKind::Transfer, depth, fmt::format("rank {} sends{}", from.value, depth == 0 ? "" : fmt::format(" ({})", depth + 1))}));
            lane = lanes.end() - 1;
        }
        const ActionKind kind = ahead ? ActionKind::SendForward : ActionKind::SendBackward;
        trace_.append(*lane, {begin, begin + costs_.transfer, traces::makeAction(kind, what.stage, what.microbatch), {}, {}});
    }

    void account(RankState& rank, const Work& work, TimeNs begin, TimeNs end)
    {
        const StageCosts& stage = costs_.stages[index(work.stage)];
        const auto change = [&](TimeNs at, Bytes bytes) {
            if (rank.activationSeries == kNowhere || bytes == 0) return;
            rank.activations += bytes;
            trace_.addMemory(rank.activationSeries, at, rank.activations);
        };
        switch (work.kind) {
        case ActionKind::Forward: change(begin, stage.activationBytes); break;
        case ActionKind::Backward: change(end, -stage.activationBytes); break;
        case ActionKind::InputGrad: change(end, stage.wgradBytes - stage.activationBytes); break;
        case ActionKind::WeightGrad: change(end, -stage.wgradBytes); break;
        default: return;
        }
        const bool makesGradient = work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad;
        if (makesGradient && !gradientHeld_[index(work.stage)] && rank.gradientSeries != kNowhere) {
            gradientHeld_[index(work.stage)] = true;
            rank.gradients += stage.gradientBytes;
            trace_.addMemory(rank.gradientSeries, begin, rank.gradients);
        }
    }

    // Each rank updates its stages right after its last action, unless the schedule said when: nothing of another rank is
    // needed for it.
    void optimizerStep(std::size_t r)
    {
        RankState& rank = ranks_[r];
        for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
            if (schedule_.stageToRank[s] != Rank{r} || costs_.stages[s].optimizer == 0 || stepped_[s]) continue;
            const TimeNs end = rank.clock + costs_.stages[s].optimizer;
            trace_.append(LaneId{r}, {rank.clock, end, traces::makeAction(ActionKind::Optimizer, Stage{s}), {}, {}});
            rank.clock = end;
        }
        if (rank.gradients > 0) trace_.addMemory(rank.gradientSeries, rank.clock, 0);
    }

    const Schedule& schedule_;
    const CostTable& costs_;
    ScheduleShape shape_;
    std::vector<Reached> reached_;
    std::vector<RankState> ranks_;
    std::vector<bool> gradientHeld_; // by stage
    std::vector<bool> stepped_;      // by stage: its optimizer
    std::array<Input, 4> inputs_{}; // of the action at hand: an overlapped pair has up to four
    std::size_t inputCount_ = 0;
    Trace trace_;
};

Error cannotExecute(const Schedule& schedule)
{
    const ValidationReport report = validate(schedule);
    if (!report.errors.empty()) return Error{fmt::format("schedule {}: {}", schedule.name, report.errors.front().message)};
    std::string text = fmt::format("schedule {}: deadlock, ranks wait for each other:", schedule.name);
    for (const WaitingRank& w : report.deadlock)
        text += fmt::format(" rank {} at position {} ({}) waits for {};", w.rank.value, w.position, w.action, w.waitsFor);
    text.pop_back();
    return Error{text};
}

// What the cost table can tell the time of; another action would pass as if it took none.
bool hasCost(ActionKind kind) { return traces::isCompute(kind) || traces::isTransfer(kind); }

Expected<void> checkKinds(const Schedule& schedule)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r])
            if (!hasCost(action.kind()))
                return Error{fmt::format("schedule {}: rank {} has {}, and no cost is known for a {}; leave such actions out to simulate "
                                         "the rest",
                                         schedule.name, r, toText(action), traces::kindName(action.kind()))};
    return {};
}

// What the simulation relies on beyond what it finds out itself.
bool withinShape(const Schedule& schedule)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r]) {
            bool inside = true;
            forEachWork(action, [&](const Work& work) {
                const bool hasMicroBatch = work.kind <= ActionKind::Reload && work.kind != ActionKind::None;
                inside = inside && work.flow == traces::Flow::Single && work.stage.value >= 0 &&
                         work.stage.value < schedule.stages() && schedule.stageToRank[index(work.stage)] == Rank{r} &&
                         (!hasMicroBatch || (work.microbatch.value >= 0 && work.microbatch.value < schedule.microbatches));
            });
            if (!inside) return false;
        }
    return true;
}

// A step that a trace could not hold is refused: whoever reads the file later would take it for damaged. The estimates are
// generous, one action after the other and nothing ever freed.
Expected<void> checkRange(const Schedule& schedule, const CostTable& costs)
{
    constexpr auto kMostTime = static_cast<double>(traces::kMostTime);
    constexpr auto kMostBytes = static_cast<double>(traces::kMostBytes);
    double longest = 0;
    double largest = 0;
    double standing = 0;
    for (const StageCosts& stage : costs.stages) {
        const TimeNs action =
            std::max({stage.forward, stage.backward, stage.inputGrad, stage.weightGrad, stage.overlap, stage.optimizer});
        longest = std::max(longest, static_cast<double>(action));
        largest = std::max(largest, static_cast<double>(stage.activationBytes));
        standing += static_cast<double>(stage.weightBytes) + static_cast<double>(stage.gradientBytes) +
                    static_cast<double>(stage.optimizerBytes);
    }
    const double actions = static_cast<double>(schedule.actionCount() + schedule.stageToRank.size());
    const double time = actions * (longest * (1 + 3 * costs.jitter) + static_cast<double>(costs.transfer));
    if (!(time <= kMostTime))
        return Error{fmt::format("the step could take {:.3g} s, more than a clock of nanoseconds can tell ({:.3g} s); take shorter "
                                 "times or fewer micro-batches",
                                 time / 1e9, kMostTime / 1e9)};
    std::size_t ofARank = 0;
    for (const std::vector<Action>& list : schedule.order) ofARank = std::max(ofARank, list.size());
    const double bytes = static_cast<double>(ofARank) * largest + standing;
    if (!(bytes <= kMostBytes))
        return Error{fmt::format("a rank could hold {:.3g} bytes, more than can be counted ({:.3g}); take smaller activations or fewer "
                                 "micro-batches",
                                 bytes, kMostBytes)};
    return {};
}

} // namespace

Expected<Trace> simulate(const Schedule& schedule, const CostTable& costs, std::stop_token stop)
{
    if (costs.stages.size() != schedule.stageToRank.size())
        return Error{fmt::format("schedule {} has {} stages, the cost table has {}; give one entry per stage", schedule.name,
                                 schedule.stages(), costs.stages.size())};
    if (!withinShape(schedule)) return cannotExecute(schedule);
    if (Expected<void> kinds = checkKinds(schedule); !kinds.ok()) return kinds.error();
    if (Expected<void> range = checkRange(schedule, costs); !range.ok()) return range.error();
    Simulation simulation(schedule, costs);
    if (!simulation.run(stop)) return stop.stop_requested() ? Error{"the simulation was stopped"} : cannotExecute(schedule);
    return simulation.take();
}

} // namespace stagecraft::engine
