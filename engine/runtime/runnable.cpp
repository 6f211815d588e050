// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/runnable.h"

#include "engine/runtime/memory_need.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::runtime {

using namespace engine;

namespace {

constexpr int kMostThreads = 256; // of mode threads: more ranks than this no host runs at the same time

// The first action that is not for this engine: it knows F and B in one direction, and hands over by itself.
const Action* firstUnknown(const Schedule& schedule)
{
    for (const auto& rank : schedule.order)
        for (const Action& action : rank) {
            if (traces::isTransfer(action.kind())) continue;
            const bool known = action.kind() == ActionKind::Forward || action.kind() == ActionKind::Backward;
            if (!known || action.work.flow != traces::Flow::Single) return &action;
        }
    return nullptr;
}

bool everyForwardComesBack(const Schedule& schedule)
{
    std::size_t backwards = 0;
    for (const auto& rank : schedule.order)
        for (const Action& action : rank)
            if (action.kind() == ActionKind::Backward) ++backwards;
    return backwards == static_cast<std::size_t>(schedule.units(traces::Flow::Single)) * schedule.stageToRank.size();
}

// "naive, gpipe, ... or hanayo": the families that run, by a small schedule of each; with two ranks BPipe has nothing to move.
std::string runningFamilies()
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies()) {
        const auto sample = generate({.name = family.name, .ranks = 4, .chunks = family.minChunks, .microbatches = 8});
        if (!sample.ok() || sample.value().asynchronous()) continue;
        if (firstUnknown(sample.value()) == nullptr && everyForwardComesBack(sample.value())) names.push_back(family.name);
    }
    const std::string last = names.back();
    names.pop_back();
    return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

Expected<void> checkActions(const Schedule& schedule)
{
    if (schedule.slices > 1)
        return Error{fmt::format("schedule {}: the live engine takes sequences whole, and this cuts each into {} slices. Take 1 slice, or "
                                 "simulate this one.",
                                 schedule.name, schedule.slices)};
    if (schedule.asynchronous())
        return Error{fmt::format("schedule {}: the live engine updates weights once a step, after all micro-batches, and this updates them "
                                 "while micro-batches are in flight. Take {}, or simulate this one.",
                                 schedule.name, runningFamilies())};
    if (const Action* unknown = firstUnknown(schedule))
        return Error{fmt::format("schedule {}: the live engine cannot execute {} ({}). It runs schedules of F and B in one direction: "
                                 "take {}, or simulate this one.",
                                 schedule.name, traces::toText(*unknown), traces::kindName(unknown->kind()), runningFamilies())};
    if (!everyForwardComesBack(schedule))
        return Error{fmt::format("schedule {}: it has forwards without a backward, and the live engine trains. Take {}, or simulate this "
                                 "one.",
                                 schedule.name, runningFamilies())};
    return {};
}

} // namespace

Expected<RunnablePlan> makeRunnable(const Plan& plan, const HostMemory& memory)
{
    if (const auto checked = checkPlan(plan); !checked.ok()) return checked.error();
    if (plan.model.empty())
        return Error{"the plan has no model, so there is nothing to run: choose one, or simulate the plan"};
    if (plan.run.steps < 1) return Error{fmt::format("run.steps: {} is not allowed; at least 1", plan.run.steps)};
    if (plan.run.mode == RunMode::Threads && plan.pipeline.ranks > kMostThreads)
        return Error{fmt::format("mode threads runs at most {} ranks, the plan has {}: take mode emulated", kMostThreads,
                                 plan.pipeline.ranks)};
    const Expected<CostTable> costs = costsOf(plan);
    if (!costs.ok()) return costs.error();
    // what surely is too much is said before its schedule is made, which may have millions of actions
    if (const auto lasting = judgeMemory(memoryNeed(plan, {}, costs.value()), memory); !lasting.ok()) return lasting.error();
    const Expected<Schedule> schedule = scheduleOf(plan);
    if (!schedule.ok()) return schedule.error();
    if (const auto actions = checkActions(schedule.value()); !actions.ok()) return actions.error();
    const ValidationReport report = validate(schedule.value());
    if (!report.errors.empty()) return Error{"the schedule is not legal: " + report.errors.front().message};
    if (!report.deadlock.empty())
        return Error{fmt::format("the schedule cannot be executed: rank {} waits in {} for {}, and that waits for it",
                                 report.deadlock.front().rank.value, report.deadlock.front().action,
                                 report.deadlock.front().waitsFor)};
    const Expected<Partition> partition = partitionOf(plan);
    if (!partition.ok()) return partition.error();
    RunnablePlan runnable{plan, withoutCommunication(schedule.value()), partition.value(), costs.value(), {}};
    runnable.note = judgeMemory(memoryNeed(plan, runnable.schedule, runnable.costs), memory).value();
    return runnable;
}

} // namespace stagecraft::runtime
