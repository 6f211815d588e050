// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/simulate.h"

#include "engine/schedule/validate.h"
#include "engine/simulate/simulated_trace.h"
#include "engine/simulate/timing.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

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
            std::max({stage.forward, stage.backward, stage.inputGrad, stage.weightGrad, 2 * stage.overlap, stage.optimizer});
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

Expected<traces::Trace> simulate(const Schedule& schedule, const CostTable& costs, std::stop_token stop)
{
    if (costs.stages.size() != schedule.stageToRank.size())
        return Error{fmt::format("schedule {} has {} stages, the cost table has {}; give one entry per stage", schedule.name,
                                 schedule.stages(), costs.stages.size())};
    if (!withinShape(schedule)) return cannotExecute(schedule);
    if (Expected<void> kinds = checkKinds(schedule); !kinds.ok()) return kinds.error();
    if (Expected<void> range = checkRange(schedule, costs); !range.ok()) return range.error();
    Timing timing(schedule, costs);
    const bool complete = timing.calculate(stop);
    if (stop.stop_requested()) return Error{"the simulation was stopped"};
    if (!complete) return cannotExecute(schedule);
    std::optional<traces::Trace> trace = simulatedTrace(schedule, costs, timing, stop);
    if (!trace) return Error{"the simulation was stopped"};
    return std::move(*trace);
}

} // namespace stagecraft::engine
