// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/trace_model.h"

#include "traces/analysis/median.h"
#include "traces/analysis/replicas.h"
#include "traces/analysis/statistics.h"
#include "traces/analysis/step_times.h"
#include "traces/analysis/step_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::engine {
namespace {

// What a schedule's order holds; hand-offs follow from it.
bool isOrdered(ActionKind kind) { return traces::isCompute(kind) && kind != ActionKind::None; }

Expected<Schedule> orderOf(const traces::Trace& trace, traces::Step step)
{
    Schedule order;
    order.slices = std::max(trace.info.slices, 1);
    const traces::StepView view = viewOf(trace, traces::StepIndex(trace), step);
    for (const traces::RankView& rank : view.ranks) {
        if (traces::replicaOf(trace.info, rank.rank) > 0) continue; // the same order on other data
        if (index(rank.rank) >= order.order.size()) order.order.resize(index(rank.rank) + 1);
        for (const traces::SliceRef slice : rank.slices) {
            const Action& action = trace.lane(slice.lane).action(slice.index);
            if (isOrdered(action.kind())) order.order[index(rank.rank)].push_back(action);
        }
    }
    // read as if it were a file: shape and placement follow from the actions
    Expected<Schedule> read = parseSchedule(toText(order), trace.info.schedule.empty() ? "custom" : trace.info.schedule);
    if (!read.ok()) return read.error().in(fmt::format("step {} of the trace", step.value));
    return read;
}

TimeNs* timeOf(StageCosts& costs, ActionKind kind)
{
    switch (kind) {
    case ActionKind::Forward: return &costs.forward;
    case ActionKind::Backward: return &costs.backward;
    case ActionKind::InputGrad: return &costs.inputGrad;
    case ActionKind::WeightGrad: return &costs.weightGrad;
    case ActionKind::Optimizer: return &costs.optimizer;
    default: return nullptr; // a recompute takes as long as its forward; pairs come after their parts
    }
}

// How much less a pair takes than its parts one after the other: the median over the step's pairs. They join stages in any
// combination, so it is one share for all of them.
double shareOfPairs(const traces::Trace& trace, traces::Step step, const std::vector<StageCosts>& stages)
{
    std::vector<double> shares;
    const traces::StepView view = viewOf(trace, traces::StepIndex(trace), step);
    for (const traces::RankView& rank : view.ranks)
        for (const traces::SliceRef ref : rank.slices) {
            const traces::Slice slice = trace.slice(ref);
            if (slice.action.kind() != ActionKind::Overlap) continue;
            const StageCosts& back = stages[index(slice.action.partner.stage)];
            const TimeNs apart = stages[index(slice.action.stage())].forward +
                                 (slice.action.partner.kind == ActionKind::InputGrad ? back.inputGrad : back.backward);
            if (apart > 0) shares.push_back(static_cast<double>(slice.duration()) / static_cast<double>(apart));
        }
    return shares.empty() ? 1 : traces::medianOf(std::move(shares));
}

} // namespace

Expected<TraceModel> modelOf(const traces::Trace& trace, traces::Step step)
{
    Expected<Schedule> schedule = orderOf(trace, step);
    if (!schedule.ok()) return schedule.error();
    TraceModel model{std::move(schedule).value(), {}};
    model.costs.stages.resize(static_cast<std::size_t>(model.schedule.stages()));
    traces::StatisticsOptions options;
    if (const std::size_t leftOut = traces::stepsLeftOut(trace.steps().size()); leftOut > 0) options.from = trace.steps()[leftOut].step;
    for (const traces::ActionStatistics& s : actionStatistics(trace, options)) {
        if (s.stage.value < 0 || index(s.stage) >= model.costs.stages.size()) continue;
        if (TimeNs* time = timeOf(model.costs.stages[index(s.stage)], s.kind))
            *time = *time == 0 ? s.median : *time + (s.median - *time) / 2; // the two copies of a stage, of two directions
    }
    for (StageCosts& stage : model.costs.stages) // one that went back only in pairs, or only in parts
        if (stage.backward == 0) stage.backward = stage.inputGrad + stage.weightGrad;
    const double share = shareOfPairs(trace, step, model.costs.stages);
    for (StageCosts& stage : model.costs.stages)
        stage.overlap = std::llround(share * static_cast<double>(stage.forward + stage.backward));
    model.costs.transfer = medianHandOff(trace, options).value_or(0);
    model.costs.origin = fmt::format("medians of the {} trace", labelText(trace.info.label));
    return model;
}

} // namespace stagecraft::engine
