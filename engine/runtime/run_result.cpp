// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_result.h"

#include "engine/simulate/simulate.h"

#include <algorithm>
#include <set>

namespace stagecraft::runtime {

using namespace engine;
using traces::ActionKind;
using traces::Bytes;
using traces::LaneKind;
using traces::Step;
using traces::StepSpan;
using traces::TimeNs;
using traces::Trace;

namespace {

TimeNs median(std::vector<TimeNs> values)
{
    if (values.empty()) return 0;
    const std::size_t upper = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(upper), values.end());
    if (values.size() % 2 == 1) return values[upper];
    const TimeNs below = *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(upper));
    return below + (values[upper] - below) / 2;
}

std::vector<StepSpan> countedSteps(const Trace& trace)
{
    std::vector<StepSpan> steps = trace.steps();
    if (steps.size() >= 3) steps.erase(steps.begin());
    return steps;
}

struct StageTimes {
    std::vector<TimeNs> forward;
    std::vector<TimeNs> backward;
    std::vector<TimeNs> optimizer;
};

struct Durations {
    std::vector<StageTimes> stages;
    std::vector<TimeNs> transfers;
};

Durations durationsOf(const Trace& trace, const std::set<Step>& counted, int stages)
{
    Durations result;
    result.stages.resize(static_cast<std::size_t>(stages));
    for (const traces::Lane& lane : trace.lanes()) {
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (!counted.contains(lane.step(i))) continue;
            const TimeNs duration = lane.end(i) - lane.begin(i);
            if (lane.info().kind == LaneKind::Transfer) {
                result.transfers.push_back(duration);
                continue;
            }
            StageTimes& stage = result.stages[traces::index(lane.action(i).stage())];
            switch (lane.action(i).kind()) {
            case ActionKind::Forward: stage.forward.push_back(duration); break;
            case ActionKind::Backward: stage.backward.push_back(duration); break;
            case ActionKind::Optimizer: stage.optimizer.push_back(duration); break;
            default: break;
            }
        }
    }
    return result;
}

// Times are measured; what is held follows from the model to the byte, but for the activations, which are counted.
std::vector<StageCosts> costsFrom(const Durations& durations, const RunFacts& facts)
{
    const std::vector<LayerCounts> layers = layerCounts(facts.plan.model);
    std::vector<StageCosts> costs;
    std::size_t layer = 0;
    for (std::size_t s = 0; s < durations.stages.size(); ++s) {
        StageCosts stage;
        stage.forward = median(durations.stages[s].forward);
        stage.backward = median(durations.stages[s].backward);
        stage.inputGrad = stage.backward / 2;
        stage.weightGrad = stage.backward - stage.inputGrad;
        stage.overlap = stage.forward + stage.backward;
        stage.optimizer = median(durations.stages[s].optimizer);
        for (int i = 0; i < facts.partition[s]; ++i, ++layer) {
            stage.weightBytes += layers[layer].parameters * Bytes{sizeof(float)};
            stage.activationBytes += layers[layer].activationBytes;
        }
        stage.gradientBytes = stage.weightBytes;
        if (facts.plan.run.optimizer == OptimizerKind::AdamW) stage.optimizerBytes = 2 * stage.weightBytes;
        costs.push_back(stage);
    }
    return costs;
}

Expected<TimeNs> simulatedStep(const Schedule& schedule, const std::vector<StageCosts>& costs, TimeNs transfer)
{
    CostTable table;
    table.stages = costs;
    table.transfer = transfer;
    table.origin = "measured by the run";
    const Expected<Trace> trace = simulate(schedule, table);
    if (!trace.ok()) return trace.error();
    return trace.value().extent().length();
}

} // namespace

Expected<RunResult> summarizeRun(const RunFacts& facts)
{
    const std::vector<StepSpan> steps = countedSteps(facts.trace);
    if (steps.empty()) return Error{"no step was completed"};

    std::set<Step> counted;
    std::vector<TimeNs> spans;
    for (const StepSpan& step : steps) {
        counted.insert(step.step);
        spans.push_back(step.span.length() - facts.trace.pausedWithin(step.span));
    }
    const Durations durations = durationsOf(facts.trace, counted, facts.schedule.stages());

    RunResult result;
    result.mode = runModeText(facts.plan.run.mode);
    result.device = deviceText(facts.plan.run.device);
    result.steps = static_cast<int>(facts.trace.steps().size());
    result.stepNs = median(spans);
    result.measuredCosts = costsFrom(durations, facts);
    result.measuredTransferNs = median(durations.transfers);
    for (const StepSpan& step : facts.trace.steps()) result.loss.push_back(step.loss.value_or(0));
    result.outputs = facts.outputs;
    result.gradientCheck = facts.check;
    result.gradientMaxAbsDiff = facts.maxAbsDiff;

    const Expected<TimeNs> predicted = simulatedStep(facts.schedule, result.measuredCosts, result.measuredTransferNs);
    if (!predicted.ok()) return predicted.error();
    const Expected<TimeNs> ideal = simulatedStep(facts.schedule, result.measuredCosts, 0);
    if (!ideal.ok()) return ideal.error();
    result.predictedStepNs = predicted.value();
    result.idealStepNs = ideal.value();
    if (result.stepNs > 0)
        result.efficiency = static_cast<double>(result.idealStepNs) / static_cast<double>(result.stepNs);
    return result;
}

} // namespace stagecraft::runtime
