// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/waterfall.h"

#include "engine/explain/trace_model.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::engine {
namespace {

constexpr std::array kTimes{&StageCosts::forward,    &StageCosts::backward, &StageCosts::inputGrad,
                            &StageCosts::weightGrad, &StageCosts::overlap,  &StageCosts::optimizer};

CostTable withoutNoise(CostTable costs)
{
    costs.jitter = 0;
    costs.machine.lateStart.clear();
    return costs;
}

// The work is the same, but every stage takes as long as any other. With ranks that differ in speed, a stage's work is what it
// takes on its own rank; of two directions, a stage has a copy on each of two ranks.
CostTable withEqualStages(const Schedule& schedule, CostTable costs)
{
    const std::vector<Flow> flows = schedule.flows();
    for (const auto time : kTimes) {
        double sum = 0;
        for (std::size_t s = 0; s < costs.stages.size(); ++s)
            for (const Flow flow : flows)
                sum += static_cast<double>(costs.stages[s].*time) * costs.machine.scaleOf(index(schedule.rankOf(flow, Stage{s}))) / static_cast<double>(flows.size());
        for (StageCosts& stage : costs.stages) stage.*time = std::llround(sum / static_cast<double>(costs.stages.size()));
    }
    costs.machine.rankScale.clear();
    return costs;
}

Expected<traces::StepFigures> simulated(const Schedule& schedule, const CostTable& costs, const std::stop_token& stop)
{
    const Expected<traces::Trace> trace = simulate(schedule, costs, stop);
    if (!trace.ok()) return trace.error();
    return stepFigures(trace.value(), traces::Step{0});
}

} // namespace

CostTable withoutNetwork(CostTable costs)
{
    costs.transfer = 0;
    costs.inside = costs.machine.between = costs.machine.host = costs.machine.replica = Link{};
    costs.machine.transfers = TransferPlace::Nothing;
    costs.machine.sharedLinks = false;
    costs.machine.send = SendMode::Buffered;
    return costs;
}

std::string_view waterfallPartText(WaterfallPart part)
{
    switch (part) {
    case WaterfallPart::Ideal: return "ideal work";
    case WaterfallPart::Structure: return "structure of the schedule";
    case WaterfallPart::Imbalance: return "imbalance";
    case WaterfallPart::Communication: return "communication";
    case WaterfallPart::Overhead: return "jitter and overhead";
    }
    return "";
}

std::string_view waterfallPartKey(WaterfallPart part)
{
    switch (part) {
    case WaterfallPart::Ideal: return "ideal_work";
    case WaterfallPart::Structure: return "structure";
    case WaterfallPart::Imbalance: return "imbalance";
    case WaterfallPart::Communication: return "communication";
    case WaterfallPart::Overhead: return "overhead";
    }
    return "";
}

std::string_view waterfallPartMeaning(WaterfallPart part)
{
    switch (part) {
    case WaterfallPart::Ideal: return "computing time of a rank, mean over the ranks";
    case WaterfallPart::Structure: return "what the order of actions adds with equal stages and free transfers";
    case WaterfallPart::Imbalance: return "what stages and ranks add that differ";
    case WaterfallPart::Communication: return "what transfers, copies and collectives add";
    case WaterfallPart::Overhead: return "what is left: jitter, late ranks, and in a run what no model knows";
    }
    return "";
}

Expected<Waterfall> waterfallOf(const Schedule& schedule, const CostTable& costs, std::optional<TimeNs> measured, const std::stop_token& stop)
{
    const CostTable quiet = withoutNoise(costs);
    const CostTable connected = withoutNetwork(quiet);
    const Expected<traces::StepFigures> equal = simulated(schedule, withEqualStages(schedule, connected), stop);
    if (!equal.ok()) return equal.error();
    const Expected<traces::StepFigures> uneven = simulated(schedule, connected, stop);
    if (!uneven.ok()) return uneven.error();
    const Expected<traces::StepFigures> joined = simulated(schedule, quiet, stop);
    if (!joined.ok()) return joined.error();

    Waterfall waterfall;
    waterfall.measured = measured.has_value();
    if (measured) {
        waterfall.total = *measured;
    } else {
        const Expected<traces::StepFigures> all = simulated(schedule, costs, stop);
        if (!all.ok()) return all.error();
        waterfall.total = all.value().makespan;
    }
    const TimeNs work = std::llround(equal.value().work);
    waterfall.bars = {work, equal.value().makespan - work, uneven.value().makespan - equal.value().makespan,
                      joined.value().makespan - uneven.value().makespan, waterfall.total - joined.value().makespan};
    return waterfall;
}

Expected<Waterfall> waterfallOf(const traces::Trace& trace, traces::Step step, const std::stop_token& stop)
{
    const Expected<traces::StepFigures> figures = stepFigures(trace, step);
    if (!figures.ok()) return figures.error();
    const Expected<TraceModel> model = modelOf(trace, step);
    if (!model.ok()) return model.error();
    Expected<Waterfall> waterfall = waterfallOf(model.value().schedule, model.value().costs, figures.value().makespan, stop);
    if (waterfall.ok()) waterfall.value().measured = trace.info.label != traces::TraceLabel::Simulated;
    return waterfall;
}

} // namespace stagecraft::engine
