// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/what_if.h"

#include "engine/explain/waterfall.h"
#include "engine/plan/plan_words.h"
#include "engine/plan/refit.h"
#include "engine/simulate/simulate.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

using traces::counted;
using traces::StepFigures;

// What of a schedule the trace may have no time for.
struct Needs {
    bool backward = false;
    bool wholeBackward = false;
    bool parts = false;
    bool pairs = false;
};

Needs needsOf(const Schedule& schedule)
{
    Needs needs;
    for (const std::vector<Action>& rank : schedule.order)
        for (const Action& action : rank) {
            const ActionKind kind = action.kind() == ActionKind::Overlap ? action.partner.kind : action.kind();
            needs.pairs = needs.pairs || action.kind() == ActionKind::Overlap;
            needs.wholeBackward = needs.wholeBackward || kind == ActionKind::Backward;
            needs.parts = needs.parts || kind == ActionKind::InputGrad || kind == ActionKind::WeightGrad;
        }
    needs.backward = needs.wholeBackward || needs.parts;
    return needs;
}

std::vector<std::string> assumptions(const Observed& observed, const Needs& needs)
{
    std::vector<std::string> notes;
    if (needs.parts && observed.split == BackwardSplit::Halves)
        notes.emplace_back("the trace has whole backwards only: I and W are taken as half of each");
    if (needs.parts && observed.split == BackwardSplit::ByPlan)
        notes.emplace_back("the trace has whole backwards only: I and W are taken from each in the proportion that its plan says");
    if (needs.wholeBackward && !observed.wholeBackward)
        notes.emplace_back("the trace has backwards in parts only: a whole one is taken as I and W one after the other");
    if (needs.pairs && !observed.pairs)
        notes.emplace_back("the trace has no forward and backward together: a pair takes as long as its plan says, or as both one after "
                           "the other");
    return notes;
}

// An order of its own is for the numbers that it was written for.
Expected<void> checkCustom(const Plan& before, const Plan& changed)
{
    const PipelineSpec& was = before.pipeline;
    const PipelineSpec& now = changed.pipeline;
    if (now.schedule != "custom" || now.customSchedule != was.customSchedule) return {};
    if (now.ranks == was.ranks && now.chunks == was.chunks && now.microbatches == was.microbatches && now.slices == was.slices) return {};
    return Error{fmt::format("the order of the trace is one of its own, for {}, {} per rank and {}; name a schedule to follow with other numbers",
                             counted(was.ranks, "rank"), counted(was.chunks, "chunk"), counted(was.microbatches, "micro-batch"))};
}

double fullest(const StepFigures& figures)
{
    double most = 0;
    for (const traces::RankFigures& rank : figures.ranks) most = std::max(most, rank.peakActivations);
    return most;
}

WhatIfRow rowOf(const Observed& observed, const Plan& plan, const StepFigures& figures, TimeNs idealStep)
{
    WhatIfRow row;
    row.pipeline = plan.pipeline;
    if (!plan.model.empty())
        if (Expected<Partition> partition = partitionOf(plan); partition.ok()) row.partition = std::move(partition).value();
    row.step = figures.makespan;
    row.bubbleMakespan = figures.bubbleMakespan;
    row.bubbleSpan = figures.bubbleSpan;
    row.bubbleOverIdeal = figures.bubbleOverIdeal;
    row.peakActivations = fullest(figures);
    for (const traces::RankFigures& rank : figures.ranks) row.peakMemory = std::max(row.peakMemory, rank.peakMemory);
    if (row.step > 0) {
        const auto step = static_cast<double>(row.step);
        row.efficiency = static_cast<double>(idealStep) / step;
        row.speedup = static_cast<double>(observed.figures.makespan) / step * plan.pipeline.microbatches / observed.plan.pipeline.microbatches;
    }
    return row;
}

} // namespace

std::string_view whatIfKindKey(WhatIfKind kind)
{
    switch (kind) {
    case WhatIfKind::Trace: return "trace";
    case WhatIfKind::Same: return "same";
    case WhatIfKind::Changed: return "changed";
    case WhatIfKind::Performed: return "performed";
    }
    return "";
}

double predictionError(TimeNs predicted, TimeNs real) { return real > 0 ? static_cast<double>(predicted) / static_cast<double>(real) - 1 : 0; }

Expected<Prediction> predict(const Observed& observed, Plan changed, const std::stop_token& stop)
{
    if (Expected<void> custom = checkCustom(observed.plan, changed); !custom.ok()) return custom.error();
    if (const Precision precision = observed.plan.run.precision; changed.run.precision != precision)
        return Error{fmt::format("run.precision: the trace is of {}, and what {} takes and keeps does not follow from it; run the plan in {}, or leave the "
                                 "precision as it is",
                                 wordOf(kPrecisionWords, precision), wordOf(kPrecisionWords, changed.run.precision),
                                 wordOf(kPrecisionWords, changed.run.precision))};
    Expected<Refit> refit = refitCosts(observed.plan, changed);
    if (!refit.ok()) return refit.error();
    changed.costs.source = CostSource::Measured;
    changed.costs.measured = std::move(refit.value().stages);
    changed.costs.measuredFrom = observed.plan.costs.measuredFrom;
    if (Expected<void> possible = checkPlan(changed); !possible.ok()) return possible.error();
    Expected<CostTable> costs = costsOf(changed);
    if (!costs.ok()) return costs.error();
    const Expected<Schedule> schedule = scheduleOf(changed, stop, &costs.value());
    if (!schedule.ok()) return schedule.error();
    const Needs needs = needsOf(schedule.value());
    if (needs.backward && !observed.backward)
        return Error{fmt::format("nothing comes back in the trace, so what a backward takes is not known, and schedule {} has backwards; take the trace "
                                 "of a training step, or a schedule without, such as forward-only",
                                 changed.pipeline.schedule)};

    Expected<traces::Trace> trace = simulate(schedule.value(), costs.value(), stop);
    if (!trace.ok()) return trace.error();
    Expected<StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) return figures.error();
    const Expected<traces::Trace> ideal = simulate(schedule.value(), withoutNetwork(costs.value()), stop);
    if (!ideal.ok()) return ideal.error();
    const Expected<StepFigures> idealFigures = traces::stepFigures(ideal.value(), traces::Step{0});
    if (!idealFigures.ok()) return idealFigures.error();

    Prediction prediction{.plan = std::move(changed),
                          .costs = std::move(costs).value(),
                          .trace = std::move(trace).value(),
                          .figures = std::move(figures).value(),
                          .idealStep = idealFigures.value().makespan,
                          .notes = assumptions(observed, needs)};
    if (!refit.value().how.empty()) prediction.notes.push_back(refit.value().how);
    return prediction;
}

WhatIfRow traceRow(const Observed& observed, const Prediction& same)
{
    WhatIfRow row = rowOf(observed, observed.plan, observed.figures, same.idealStep);
    row.kind = WhatIfKind::Trace;
    row.label = observed.label;
    return row;
}

WhatIfRow predictedRow(const Observed& observed, const Prediction& prediction, WhatIfKind kind)
{
    WhatIfRow row = rowOf(observed, prediction.plan, prediction.figures, prediction.idealStep);
    row.kind = kind;
    row.notes = prediction.notes;
    if (kind == WhatIfKind::Same) row.predictionError = predictionError(row.step, observed.figures.makespan);
    return row;
}

Expected<WhatIfRow> performedRow(const Observed& observed, const Prediction& prediction, const traces::Trace& run)
{
    const Expected<Observed> performed = observe(run);
    if (!performed.ok()) return performed.error().in("the run");
    WhatIfRow row = rowOf(observed, prediction.plan, performed.value().figures, prediction.idealStep);
    row.kind = WhatIfKind::Performed;
    row.label = performed.value().label;
    return row;
}

} // namespace stagecraft::engine
