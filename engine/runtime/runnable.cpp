// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/runnable.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <fmt/format.h>

#include <numeric>
#include <variant>

#include <unistd.h>

namespace stagecraft::runtime {

using namespace engine;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr int kMostThreads = 256; // of mode threads: more ranks than this no host runs at the same time

Expected<void> checkActions(const Schedule& schedule)
{
    std::size_t backwards = 0;
    for (const auto& rank : schedule.order) {
        for (const Action& action : rank) {
            if (traces::isTransfer(action.kind())) continue; // the engine hands over by itself
            if (action.kind() == ActionKind::Backward) ++backwards;
            if (action.work.flow == traces::Flow::Single &&
                (action.kind() == ActionKind::Forward || action.kind() == ActionKind::Backward))
                continue;
            return Error{fmt::format("schedule {}: the live engine cannot execute {} ({}). It runs schedules of F and B in one "
                                     "direction: take naive, gpipe, 1f1b or interleaved, or simulate this one.",
                                     schedule.name, traces::toText(action), traces::kindName(action.kind()))};
        }
    }
    if (backwards != static_cast<std::size_t>(schedule.stages()) * static_cast<std::size_t>(schedule.microbatches))
        return Error{fmt::format("schedule {}: it has forwards without a backward, and the live engine trains. Take "
                                 "naive, gpipe, 1f1b or interleaved, or simulate this one.",
                                 schedule.name)};
    return {};
}

double elementsOf(const std::vector<std::int64_t>& shape)
{
    return std::accumulate(shape.begin(), shape.end(), 1.0, [](double product, std::int64_t size) {
        return product * static_cast<double>(size);
    });
}

// A run makes its whole batch before it starts: inputs and targets of all micro-batches; its check makes them once more.
Expected<void> checkBatch(const Plan& plan)
{
    const int rows = plan.model.microbatchRows;
    const double tokens = elementsOf(inputShape(plan.model, rows)) * sizeof(std::int64_t);
    const bool startsWithTokens = std::holds_alternative<Embedding>(plan.model.layers.front());
    const double inputs = startsWithTokens ? tokens : elementsOf(inputShape(plan.model, rows)) * sizeof(float);
    const double targets =
        plan.model.loss == Loss::CrossEntropy ? tokens : elementsOf(outputShape(plan.model, rows)) * sizeof(float);
    const double copies = plan.run.check == CheckMode::Off ? 1 : 2;
    const double bytes = (inputs + targets) * plan.pipeline.microbatches * copies;
    const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (bytes <= memory) return {};
    return Error{fmt::format("model.microbatch_rows {} times pipeline.microbatches {} makes {:.3g} GiB of inputs and targets, "
                             "and this machine has {:.3g} GiB: take fewer or smaller micro-batches",
                             rows, plan.pipeline.microbatches, bytes / kGiB, memory / kGiB)};
}

} // namespace

Expected<RunnablePlan> makeRunnable(const Plan& plan)
{
    if (const auto checked = checkPlan(plan); !checked.ok()) return checked.error();
    if (plan.model.empty())
        return Error{"the plan has no model, so there is nothing to run: choose one, or simulate the plan"};
    if (plan.run.steps < 1) return Error{fmt::format("run.steps: {} is not allowed; at least 1", plan.run.steps)};
    if (plan.run.mode == RunMode::Threads && plan.pipeline.ranks > kMostThreads)
        return Error{fmt::format("mode threads runs at most {} ranks, the plan has {}: take mode emulated", kMostThreads,
                                 plan.pipeline.ranks)};
    if (const auto batch = checkBatch(plan); !batch.ok()) return batch.error();
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
    const Expected<CostTable> costs = costsOf(plan);
    if (!costs.ok()) return costs.error();
    return RunnablePlan{plan, withoutCommunication(schedule.value()), partition.value(), costs.value()};
}

} // namespace stagecraft::runtime
