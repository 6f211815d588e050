// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/observed.h"

#include "engine/explain/trace_model.h"
#include "engine/plan/plan_json.h"
#include "traces/analysis/finished_steps.h"
#include "traces/analysis/statistics.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace stagecraft::engine {
namespace {

using traces::counted;
using traces::TraceLabel;

// The step whose time stands for all that came to their end.
Expected<traces::Step> middleStepOf(const traces::Trace& trace)
{
    const std::vector<traces::Step> steps = traces::stepsOf(trace);
    if (steps.empty())
        return Error{fmt::format("the trace has no computing slice, so nothing tells what its actions cost; it has {} in {}",
                                 counted(trace.sliceCount(), "event"), counted(trace.laneCount(), "lane"))};
    const std::vector<traces::StepTime> counted = traces::countedSteps(trace.steps(), trace.pauses());
    if (!counted.empty())
        if (const traces::Step middle = traces::middleStep(counted).step; std::find(steps.begin(), steps.end(), middle) != steps.end()) return middle;
    const traces::FinishedSteps finished(trace);
    const auto first = std::find_if(steps.begin(), steps.end(), [&](traces::Step step) { return finished.contains(step); });
    if (first != steps.end()) return *first;
    return Error{fmt::format("the trace broke off in its step {}, before any came to its end; take one with a whole step", steps.front().value)};
}

// Without what a simulator or a run adds by itself: transfers, updates.
std::vector<std::vector<Action>> passesOf(const Schedule& schedule)
{
    std::vector<std::vector<Action>> passes = schedule.order;
    for (std::vector<Action>& rank : passes)
        std::erase_if(rank, [](const Action& action) { return action.kind() > ActionKind::Overlap || action.kind() < ActionKind::Forward; });
    return passes;
}

// A plan with the order that was seen; by the name of a family where that makes the same order, so that its numbers can change.
Expected<Plan> planOf(const Schedule& seen)
{
    Plan plan;
    plan.pipeline.schedule = seen.name;
    plan.pipeline.ranks = seen.ranks;
    plan.pipeline.chunks = seen.chunks;
    plan.pipeline.microbatches = seen.microbatches;
    plan.pipeline.slices = seen.slices;
    if (findFamily(seen.name) != nullptr)
        if (const Expected<Schedule> made = generate(requestOf(plan.pipeline)); made.ok() && passesOf(made.value()) == passesOf(seen)) return plan;
    return withCustomSchedule(std::move(plan), toText(seen));
}

bool hasShapeOf(const Plan& plan, const Schedule& seen)
{
    return plan.pipeline.ranks == seen.ranks && plan.stages() == seen.stages() && plan.pipeline.microbatches == seen.microbatches &&
           plan.pipeline.slices == seen.slices;
}

// The plan in the trace, where there is one and the trace is of it.
std::optional<Plan> ownPlan(const traces::Trace& trace, const Schedule& seen, std::vector<std::string>& notes)
{
    if (trace.info.planJson.empty()) return std::nullopt;
    Expected<Plan> plan = readPlan(trace.info.planJson);
    if (!plan.ok()) {
        notes.push_back("the plan in the trace cannot be read, and its order alone counts: " + plan.error().message);
        return std::nullopt;
    }
    if (hasShapeOf(plan.value(), seen)) return std::move(plan).value();
    notes.push_back(fmt::format("the plan in the trace is not of this order, and the order alone counts: the plan has {} and {}, the order {} and {}",
                                counted(plan.value().stages(), "stage"), counted(plan.value().pipeline.microbatches, "micro-batch"), seen.stages(),
                                seen.microbatches));
    return std::nullopt;
}

TimeNs inProportion(TimeNs whole, TimeNs part, TimeNs of)
{
    return std::llround(static_cast<double>(whole) * (static_cast<double>(part) / static_cast<double>(of)));
}

// What costsOf() divided among the parts of a micro-batch.
void joinParts(StageCosts& stage, int parts)
{
    for (TimeNs* time : {&stage.forward, &stage.backward, &stage.inputGrad, &stage.weightGrad, &stage.overlap}) *time *= parts;
    for (Bytes* bytes : {&stage.activationBytes, &stage.wgradBytes, &stage.inputBytes, &stage.outputBytes}) *bytes *= parts;
}

// Times as they were seen, sizes as they were said.
StageCosts joined(StageCosts said, const StageCosts& seen)
{
    said.forward = seen.forward;
    said.backward = seen.backward;
    said.inputGrad = seen.inputGrad;
    said.weightGrad = seen.weightGrad;
    said.overlap = seen.overlap;
    said.optimizer = seen.optimizer;
    return said;
}

void setKinds(Observed& observed, const traces::Trace& trace)
{
    observed.wholeBackward = false;
    bool parts = false;
    for (const traces::ActionStatistics& s : traces::actionStatistics(trace)) {
        observed.wholeBackward = observed.wholeBackward || s.kind == ActionKind::Backward;
        observed.pairs = observed.pairs || s.kind == ActionKind::Overlap;
        parts = parts || s.kind == ActionKind::InputGrad || s.kind == ActionKind::WeightGrad;
    }
    observed.backward = observed.wholeBackward || parts || observed.pairs;
}

// The plan's costs become those that were seen.
void setTimes(Observed& observed, const CostTable& seen, bool ownPlan)
{
    const Expected<CostTable> said = costsOf(observed.plan);
    CostSpec& costs = observed.plan.costs;
    const MachineModel& machine = observed.plan.machine;
    const bool simulated = observed.label == TraceLabel::Simulated;
    const bool trusted = ownPlan && said.ok() && (simulated || costs.source == CostSource::Measured);
    const bool dividesUpdate = ownPlan && observed.plan.pipeline.sharding >= Sharding::Zero1 && machine.replicas > 1;
    std::vector<StageCosts> stages;
    for (std::size_t s = 0; s < seen.stages.size(); ++s) {
        const StageCosts known = said.ok() ? said.value().stages[s] : StageCosts{};
        StageCosts stage = joined(known, seen.stages[s]);
        if (stage.inputGrad == 0 && stage.weightGrad == 0 && stage.backward > 0) {
            const bool byPlan = trusted && known.inputGrad > 0 && known.weightGrad > 0;
            observed.split = byPlan ? BackwardSplit::ByPlan : BackwardSplit::Halves;
            stage.inputGrad = byPlan ? inProportion(stage.backward, known.inputGrad, known.inputGrad + known.weightGrad) : stage.backward / 2;
            stage.weightGrad = stage.backward - stage.inputGrad;
        }
        if (!observed.pairs && trusted && simulated && known.forward + known.backward > 0)
            stage.overlap = inProportion(stage.forward + stage.backward, known.overlap, known.forward + known.backward);
        if (dividesUpdate) stage.optimizer *= machine.replicas; // each replica's share was seen
        joinParts(stage, observed.plan.pipeline.parts());
        stages.push_back(stage);
    }
    costs.source = CostSource::Measured;
    costs.measured = std::move(stages);
    costs.measuredFrom = seen.origin;
    // all of this is in the times and sizes of the stages now
    costs.stageScale.clear();
    costs.inputGrad.reset();
    costs.weightGrad.reset();
    costs.overlap.reset();
    costs.optimizer.reset();
    costs.activationBytes = costs.wgradBytes = 0;
    costs.jitter = 0;
}

// What the trace's transfers are, as a plan says it.
void setNetwork(Observed& observed, TimeNs handOff, bool ownPlan)
{
    Plan& plan = observed.plan;
    if (observed.label != TraceLabel::Simulated || !ownPlan) { // of the rest a run has no part
        const MachineModel said = std::exchange(plan.machine, MachineModel{});
        plan.machine.memory = said.memory;
        if (ownPlan) plan.machine.replicas = said.replicas;
        if (ownPlan) plan.machine.bucketBytes = said.bucketBytes;
        if (ownPlan && observed.label == TraceLabel::Emulated) plan.machine.replica = said.replica;
    }
    plan.machine.rankScale.clear(); // is in the times of the stages
    if (ownPlan && (observed.label == TraceLabel::Simulated || observed.label == TraceLabel::Emulated)) return;
    plan.costs.latency = handOff;
    plan.costs.bandwidth = 0;
    if (handOff == 0 && plan.pipeline.ranks > 1) observed.notes.push_back("the trace shows no time between ranks, and transfers are taken as free");
}

} // namespace

std::string_view backwardSplitKey(BackwardSplit split)
{
    switch (split) {
    case BackwardSplit::Seen: return "seen";
    case BackwardSplit::ByPlan: return "plan";
    case BackwardSplit::Halves: return "halves";
    }
    return "";
}

Expected<Observed> observe(const traces::Trace& trace)
{
    const Expected<traces::Step> step = middleStepOf(trace);
    if (!step.ok()) return step.error();
    Expected<traces::StepFigures> figures = traces::stepFigures(trace, step.value());
    if (!figures.ok()) return figures.error();
    Expected<TraceModel> model = modelOf(trace, step.value());
    if (!model.ok()) return model.error();
    const Schedule& seen = model.value().schedule;

    Observed observed;
    observed.label = trace.info.label;
    observed.step = step.value();
    observed.figures = std::move(figures).value();
    observed.steps = std::max<std::size_t>(trace.steps().size() - traces::stepsLeftOut(trace.steps().size()), 1);
    std::optional<Plan> own = ownPlan(trace, seen, observed.notes);
    const bool isOwn = own.has_value();
    if (!own) {
        Expected<Plan> plan = planOf(seen);
        if (!plan.ok()) return plan.error().in("the order of the trace");
        own = std::move(plan).value();
    }
    observed.plan = std::move(*own);
    setKinds(observed, trace);
    setTimes(observed, model.value().costs, isOwn);
    setNetwork(observed, model.value().costs.transfer, isOwn);
    return observed;
}

} // namespace stagecraft::engine
