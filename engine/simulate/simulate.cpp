// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/simulate.h"

#include "engine/schedule/circle_text.h"
#include "engine/schedule/lower.h"
#include "engine/simulate/machine.h"
#include "engine/simulate/simulated_trace.h"
#include "engine/simulate/timing.h"
#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

Error cannotExecute(const Schedule& schedule, SendMode send)
{
    const ValidationReport report = validate(schedule, {.send = send});
    if (!report.errors.empty()) return Error{fmt::format("schedule {}: {}", schedule.name, report.errors.front().message)};
    return Error{fmt::format("schedule {}: deadlock, ranks wait for each other: {}", schedule.name, circleText(report.deadlock))};
}

// What the cost table can tell the time of; another action would pass as if it took none.
bool hasCost(ActionKind kind)
{
    return traces::isCompute(kind) || traces::isTransfer(kind) || (kind >= ActionKind::Offload && kind <= ActionKind::ReduceGrad);
}

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
            forEachWork(action, [&](const traces::Work& work) {
                const bool hasMicroBatch = work.kind <= ActionKind::Reload && work.kind != ActionKind::None;
                inside = inside && schedule.has(work.flow) && work.stage.value >= 0 && work.stage.value < schedule.stages() &&
                         schedule.rankOf(work.flow, work.stage) == Rank{r} &&
                         (!hasMicroBatch || (work.microbatch.value >= 0 && work.microbatch.value < schedule.units(work.flow)));
            });
            if (!inside) return false;
        }
    return true;
}

double seconds(const Link& link, double bytes) { return link.bytesPerSecond > 0 ? bytes / link.bytesPerSecond : 0; }

// A step that a trace could not hold is refused: whoever reads the file later would take it for damaged. The estimates are
// generous, one action after the other and nothing ever freed.
Expected<void> checkRange(const Schedule& schedule, const CostTable& costs, int steps)
{
    constexpr auto kMostTime = static_cast<double>(traces::kMostTime);
    constexpr auto kMostBytes = static_cast<double>(traces::kMostBytes);
    double longest = 0;
    double largest = 0;
    double standing = 0;
    for (const StageCosts& stage : costs.stages) {
        const TimeNs action =
            std::max({stage.forward, stage.backward, stage.inputGrad, stage.weightGrad, 2 * stage.overlap, stage.optimizer});
        longest = std::max(longest, static_cast<double>(action));
        largest = std::max(largest, static_cast<double>(stage.activationBytes) + 2 * static_cast<double>(stage.outputBytes) +
                                        static_cast<double>(stage.inputBytes));
        standing += static_cast<double>(stage.weightBytes) + static_cast<double>(stage.gradientBytes) +
                    static_cast<double>(stage.optimizerBytes);
    }
    if (!costs.sliceTime.empty()) longest *= *std::max_element(costs.sliceTime.begin(), costs.sliceTime.end());
    if (!costs.sliceSize.empty()) largest *= *std::max_element(costs.sliceSize.begin(), costs.sliceSize.end());
    const double actions = static_cast<double>(schedule.actionCount() + schedule.stageToRank.size());
    const MachineModel& machine = costs.machine;
    double beside = static_cast<double>(costs.transfer); // the longest of what an action may wait for
    for (const Link& link : {costs.inside, machine.between, machine.host})
        beside = std::max(beside, static_cast<double>(link.latency) + seconds(link, largest) * 1e9);
    const double tied = costs.tiedBytes == 0 ? 0 : 2 * beside + seconds(costs.inside, static_cast<double>(costs.tiedBytes)) * 1e9 +
                                                       seconds(machine.between, static_cast<double>(costs.tiedBytes)) * 1e9;
    const double collectives = tied + machine.replicas * (static_cast<double>(machine.replica.latency) * static_cast<double>(schedule.stages()) *
                                                       (1 + standing / static_cast<double>(std::max<Bytes>(machine.bucketBytes, 1))) +
                                                   seconds(machine.replica, standing) * 1e9);
    double slowest = 1;
    for (const double scale : machine.rankScale) slowest = std::max(slowest, scale);
    double late = 0;
    for (const TimeNs start : machine.lateStart) late = std::max(late, static_cast<double>(start));
    const double time = late + steps * (actions * (longest * slowest * (1 + 3 * costs.jitter) + beside) + 4 * collectives);
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

// Whether the plain simulation says it all: equal ranks, transfers that occupy nothing, nothing beside the computing.
bool isPlain(const Schedule& schedule, const CostTable& costs)
{
    MachineModel machine = costs.machine;
    machine.memory = 0; // is only shown
    if (machine != MachineModel{} || costs.sharding != Sharding::None || costs.tiedBytes > 0) return false;
    for (const StageCosts& stage : costs.stages)
        if (stage.outputBytes > 0) return false; // buffers
    return std::all_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::all_of(list.begin(), list.end(), [](const Action& action) {
            return traces::isTransfer(action.kind()) || (traces::isCompute(action.kind()) && action.kind() != ActionKind::Recompute);
        });
    });
}

// Sends that wait, occupy or queue have their place in the order of a rank.
bool needsHandoffs(const MachineModel& machine) { return machine.send != SendMode::Buffered || machine.transfers == TransferPlace::Ranks; }

Expected<void> checkInputs(const Schedule& schedule, const CostTable& costs, int steps)
{
    const MachineModel& machine = costs.machine;
    if (costs.stages.size() != schedule.stageToRank.size())
        return Error{fmt::format("schedule {} has {} stages, the cost table has {}; give one entry per stage", schedule.name,
                                 schedule.stages(), costs.stages.size())};
    for (const auto& [what, size] : {std::pair{"rank_scale", machine.rankScale.size()}, std::pair{"late_start", machine.lateStart.size()}})
        if (size != 0 && size != schedule.order.size())
            return Error{fmt::format("machine.{}: it has {}, the schedule has {}; give one per rank", what, traces::counted(size, "entry"),
                                     traces::counted(schedule.order.size(), "rank"))};
    if (steps < 1 || steps > kMostSimulatedSteps)
        return Error{fmt::format("{} steps cannot be simulated; 1 to {}", steps, kMostSimulatedSteps)};
    if (!withinShape(schedule)) return cannotExecute(schedule, machine.send);
    if (Expected<void> kinds = checkKinds(schedule); !kinds.ok()) return kinds;
    return checkRange(schedule, costs, steps);
}

// The schedule as the machine executes it: with hand-offs, by PyTorch's rule, where it has to have them.
Expected<Schedule> executed(const Schedule& schedule, const MachineModel& machine)
{
    if (!needsHandoffs(machine) || hasCommunication(schedule)) return schedule;
    Expected<Schedule> lowered = lowerCommunication(schedule);
    if (!lowered.ok()) return cannotExecute(schedule, SendMode::Buffered);
    return lowered;
}

Error stopped() { return Error{"the simulation was stopped"}; }

Expected<traces::Trace> simulatePlain(const Schedule& schedule, const CostTable& costs, const std::stop_token& stop)
{
    Timing timing(schedule, costs);
    const bool complete = timing.calculate(stop);
    if (stop.stop_requested()) return stopped();
    if (!complete) return cannotExecute(schedule, SendMode::Buffered);
    std::optional<traces::Trace> trace = simulatedTrace(schedule, costs, timing, stop);
    if (!trace) return stopped();
    return std::move(*trace);
}

} // namespace

Expected<traces::Trace> simulate(const Schedule& schedule, const CostTable& costs, std::stop_token stop, int steps)
{
    if (Expected<void> sound = checkInputs(schedule, costs, steps); !sound.ok()) return sound.error();
    if (steps == 1 && isPlain(schedule, costs)) return simulatePlain(schedule, costs, stop);
    const Expected<Schedule> whole = executed(schedule, costs.machine);
    if (!whole.ok()) return whole.error();
    Machine machine(whole.value(), costs);
    const bool complete = machine.run(steps, stop);
    if (stop.stop_requested()) return stopped();
    if (!complete) return cannotExecute(whole.value(), costs.machine.send);
    return std::move(machine).trace();
}

Expected<PartialSimulation> simulateUntilStuck(const Schedule& schedule, const CostTable& costs, std::stop_token stop)
{
    if (Expected<void> sound = checkInputs(schedule, costs, 1); !sound.ok()) return sound.error();
    PartialSimulation partial;
    Expected<Schedule> whole = executed(schedule, costs.machine);
    partial.schedule = whole.ok() ? std::move(whole).value() : schedule; // one that cannot be lowered waits for ever without that, too
    const ValidationReport report = validate(partial.schedule, {.send = costs.machine.send});
    if (!report.errors.empty()) return Error{fmt::format("schedule {}: {}", schedule.name, report.errors.front().message)};
    partial.deadlock = report.deadlock;
    Machine machine(partial.schedule, costs);
    machine.run(1, stop);
    if (stop.stop_requested()) return stopped();
    partial.trace = std::move(machine).trace();
    return partial;
}

} // namespace stagecraft::engine
