// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_result.h"

#include "engine/model/tied.h"
#include "engine/runtime/replica_part.h"
#include "engine/runtime/memory_need.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/median.h"
#include "traces/analysis/step_times.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::runtime {

using namespace engine;
using traces::ActionKind;
using traces::Bytes;
using traces::Stage;
using traces::StepSpan;
using traces::StepTime;
using traces::TimeNs;
using traces::Trace;

namespace {

// What the schedule has nothing of follows from what it has: a whole backward is its parts, a part half of it, a pair the sum, and
// of one that always ran together with another the half.
void fillIn(StageCosts& stage)
{
    if (stage.backward == 0) stage.backward = stage.inputGrad + stage.weightGrad;
    if (stage.forward == 0 && stage.overlap > 0) stage.forward = std::max<TimeNs>(stage.overlap - stage.backward, stage.overlap / 3);
    if (stage.backward == 0 && stage.overlap > 0) stage.backward = stage.overlap - stage.forward;
    if (stage.inputGrad == 0) stage.inputGrad = stage.backward / 2;
    if (stage.weightGrad == 0) stage.weightGrad = std::max<TimeNs>(stage.backward - stage.inputGrad, 0);
    if (stage.overlap == 0) stage.overlap = stage.forward + stage.backward;
}

// Times are measured; what is held follows from the model to the byte, but for the activations, which are counted.
std::vector<StageCosts> costsFrom(const RunFacts& facts)
{
    const std::vector<LayerCounts> layers = heldCounts(facts.plan.model, facts.partition.size(), facts.plan.run.precision);
    std::vector<StageCosts> costs;
    std::size_t layer = 0;
    for (std::size_t s = 0; s < facts.partition.size(); ++s) {
        StageCosts stage;
        std::int64_t parameters = 0;
        stage.forward = facts.totals.median(Stage{s}, ActionKind::Forward);
        stage.backward = facts.totals.median(Stage{s}, ActionKind::Backward);
        stage.inputGrad = facts.totals.median(Stage{s}, ActionKind::InputGrad);
        stage.weightGrad = facts.totals.median(Stage{s}, ActionKind::WeightGrad);
        stage.overlap = facts.totals.median(Stage{s}, ActionKind::Overlap);
        fillIn(stage);
        stage.optimizer = facts.totals.median(Stage{s}, ActionKind::Optimizer);
        if (dividesUpdate(facts.plan)) stage.optimizer *= facts.plan.machine.replicas; // each replica's share was measured
        for (int i = 0; i < facts.partition[s]; ++i, ++layer) {
            parameters += layers[layer].parameters;
            stage.activationBytes += layers[layer].activationBytes;
            stage.wgradBytes += layers[layer].wgradBytes;
        }
        stage.weightBytes = parameters * valueBytes(facts.plan.run.precision);
        stage.gradientBytes = parameters * kMainBytes;
        stage.optimizerBytes = facts.plan.run.optimizerValues() * stage.gradientBytes;
        costs.push_back(stage);
    }
    return costs;
}

// As fast as the ways between replicas would be whose rings took the time of the run's collectives.
Link measuredReplicaLink(const RunFacts& facts, const std::vector<StageCosts>& costs)
{
    const double copies = facts.plan.machine.replicas * static_cast<double>(facts.schedule.flows().size());
    std::vector<double> gathers(costs.size(), 0); // of each stage's weights: by UNSHARD, or behind the update
    for (const std::vector<Action>& list : facts.schedule.order)
        for (const Action& action : list)
            if (action.kind() == ActionKind::Unshard) ++gathers[index(action.stage())];
    double bytes = 0; // that go through all rings of a step, of every rank
    for (std::size_t s = 0; s < costs.size(); ++s) {
        const auto gradients = static_cast<double>(costs[s].gradientBytes);
        if (dividesUpdate(facts.plan) && gathers[s] == 0) gathers[s] = static_cast<double>(facts.schedule.flows().size());
        if (!facts.schedule.inference()) bytes += (dividesUpdate(facts.plan) ? 1 : 2) * gradients * (copies - 1);
        bytes += static_cast<double>(costs[s].weightBytes) * gathers[s] * (facts.plan.machine.replicas - 1);
    }
    const auto time = static_cast<double>(facts.totals.medianCollectives());
    return {.latency = 0, .bytesPerSecond = time > 0 ? bytes / time * 1e9 : 0};
}

enum class Ways : std::uint8_t { Measured, Free };

// Model FLOPs: what is computed again is no work done (PaLM, arXiv 2204.02311 appendix B).
Throughput throughputOf(const RunFacts& facts, TimeNs step)
{
    if (step <= 0) return {};
    const ModelSpec& model = facts.plan.model;
    double flops = 0;
    for (const LayerCounts& layer : layerCounts(model)) flops += layer.forwardFlops + (facts.schedule.inference() ? 0 : layer.backwardFlops);
    const double replicas = facts.plan.machine.replicas;
    const double perSecond = facts.plan.pipeline.microbatches * replicas * 1e9 / static_cast<double>(step);
    Throughput throughput{.samplesPerSecond = model.microbatchRows * perSecond, .flopsPerSecond = flops * perSecond, .peakFlopsPerSecond = facts.peakFlops};
    if (const auto* embedding = std::get_if<Embedding>(&model.layers.front()))
        throughput.tokensPerSecond = throughput.samplesPerSecond * embedding->sequence;
    if (facts.peakFlops > 0) throughput.utilisation = throughput.flopsPerSecond / (facts.peakFlops * facts.schedule.ranks * replicas);
    return throughput;
}

Expected<TimeNs> simulatedStep(const RunFacts& facts, const RunResult& measured, Ways ways)
{
    CostTable table;
    table.stages = measured.measuredCosts;
    table.machine.barrier = facts.plan.run.clipNorm > 0; // all ranks meet before their updates
    if (facts.partition.size() > 1) table.tiedBytes = tiedValues(facts.plan.model) * kMainBytes;
    table.machine.replicas = facts.plan.machine.replicas;
    table.machine.bucketBytes = facts.plan.machine.bucketBytes;
    table.sharding = facts.plan.pipeline.sharding;
    const bool modelled = facts.plan.run.mode == RunMode::Emulated;
    if (ways == Ways::Measured) {
        table.transfer = measured.measuredTransferNs;
        if (modelled) table.inside = {facts.plan.costs.latency, facts.plan.costs.bandwidth};
        if (facts.plan.machine.replicas > 1)
            table.machine.replica = modelled ? facts.plan.machine.replica : measuredReplicaLink(facts, measured.measuredCosts);
    }
    table.origin = "measured by the run";
    const Expected<Trace> trace = simulate(facts.schedule, table);
    if (!trace.ok()) return trace.error();
    return trace.value().extent().length();
}

std::vector<RankActivations> rankActivations(const RunFacts& facts)
{
    CostTable table;
    for (const StageActivations& stage : facts.stageActivations) {
        StageCosts& costs = table.stages.emplace_back();
        costs.activationBytes = stage.saved;
        costs.wgradBytes = stage.forWeights;
    }
    std::vector<RankActivations> ranks;
    for (std::size_t r = 0; r < facts.peakActivations.size(); ++r) {
        const std::vector<Action>& order = facts.schedule.order[r];
        RankActivations& rank = ranks.emplace_back(RankActivations{facts.peakActivations[r], {}});
        const bool recomputes = std::any_of(order.begin(), order.end(), [](const Action& a) { return a.kind() == ActionKind::Recompute; });
        if (!recomputes) rank.predicted = std::llround(peakActivations(order, table));
    }
    return ranks;
}

} // namespace

Expected<RunResult> summarizeRun(const RunFacts& facts)
{
    const std::vector<StepTime> counted = traces::countedSteps(facts.totals.steps(), facts.totals.pauses());
    if (counted.empty()) return Error{"no step was completed"};

    RunResult result;
    result.mode = runModeText(facts.plan.run.mode);
    result.device = deviceText(facts.plan.run.device);
    result.steps = static_cast<int>(facts.totals.steps().size());
    std::vector<TimeNs> times;
    for (const StepTime& step : counted) times.push_back(step.time);
    result.stepNs = traces::medianOf(std::move(times));
    result.throughput = throughputOf(facts, result.stepNs);
    result.measuredCosts = costsFrom(facts);
    result.measuredTransferNs = facts.totals.medianTransfer();
    for (const StepSpan& step : facts.totals.steps()) result.loss.push_back(step.loss.value_or(0));
    result.outputs = facts.outputs;
    result.gradientCheck = facts.check;
    result.gradientMaxAbsDiff = facts.maxAbsDiff;
    result.text = facts.text;
    result.stageActivations = facts.stageActivations;
    result.rankActivations = rankActivations(facts);

    const Expected<TimeNs> predicted = simulatedStep(facts, result, Ways::Measured);
    if (!predicted.ok()) return predicted.error();
    const Expected<TimeNs> ideal = simulatedStep(facts, result, Ways::Free);
    if (!ideal.ok()) return ideal.error();
    result.predictedStepNs = predicted.value();
    result.idealStepNs = ideal.value();
    if (result.stepNs > 0)
        result.efficiency = static_cast<double>(result.idealStepNs) / static_cast<double>(result.stepNs);
    return result;
}

} // namespace stagecraft::runtime
