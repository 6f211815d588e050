// SPDX-License-Identifier: Apache-2.0
//
// From a plan to its cost table: times by the plan's source, sizes from the plan or else from the model.
#include "engine/plan/plan.h"

#include "engine/model/tied.h"
#include "engine/plan/machine_json.h"
#include "engine/plan/slice_shares.h"
#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace stagecraft::engine {
namespace {

// Times beyond this overflow sums over a schedule long before they mean anything.
constexpr double kMostTime = 1e15; // ns: eleven days for one action

Expected<TimeNs> roundedTime(double ns, std::string_view what)
{
    if (ns >= 0 && ns <= kMostTime) return static_cast<TimeNs>(std::llround(ns));
    return Error{fmt::format("costs: {} comes to {:.3g} s; at most {:.3g} s is allowed", what, ns / 1e9, kMostTime / 1e9)};
}

// What a plan says of itself, whether in a file or by an option.
Expected<void> checkSaid(const CostSpec& costs)
{
    for (const auto& [name, time] : {std::pair{"forward", costs.forward}, std::pair{"backward", costs.backward},
                                     std::pair{"input_grad", costs.inputGrad.value_or(0)},
                                     std::pair{"weight_grad", costs.weightGrad.value_or(0)},
                                     std::pair{"overlap", costs.overlap.value_or(0)},
                                     std::pair{"optimizer", costs.optimizer.value_or(0)}, std::pair{"latency", costs.latency}})
        if (Expected<TimeNs> rounded = roundedTime(static_cast<double>(time), name); !rounded.ok()) return rounded.error();
    const auto sizes = [](std::initializer_list<std::pair<std::string_view, Bytes>> said) -> Expected<void> {
        for (const auto& [name, bytes] : said)
            if (bytes < 0 || bytes > traces::kMostBytes)
                return Error{fmt::format("costs: {} is {}; 0 to {} is allowed", name, traces::counted(bytes, "byte"), traces::kMostBytes)};
        return {};
    };
    if (Expected<void> ok = sizes({{"activation_bytes", costs.activationBytes},
                                   {"wgrad_bytes", costs.wgradBytes},
                                   {"boundary_bytes", costs.boundaryBytes}});
        !ok.ok())
        return ok;
    if (costs.attentionShare && !(*costs.attentionShare >= 0 && *costs.attentionShare <= 1))
        return Error{fmt::format("costs: attention_share is {:g}; 0 to 1 is allowed", *costs.attentionShare)};
    for (const StageCosts& stage : costs.measured) {
        for (const TimeNs time :
             {stage.forward, stage.backward, stage.inputGrad, stage.weightGrad, stage.overlap, stage.optimizer})
            if (Expected<TimeNs> rounded = roundedTime(static_cast<double>(time), "a measured time"); !rounded.ok())
                return rounded.error();
        if (Expected<void> ok = sizes({{"measured activation_bytes", stage.activationBytes},
                                       {"measured wgrad_bytes", stage.wgradBytes},
                                       {"measured weight_bytes", stage.weightBytes},
                                       {"measured gradient_bytes", stage.gradientBytes},
                                       {"measured optimizer_bytes", stage.optimizerBytes},
                                       {"measured input_bytes", stage.inputBytes},
                                       {"measured output_bytes", stage.outputBytes}});
            !ok.ok())
            return ok;
    }
    return {};
}

Error wrongLength(std::string_view what, std::size_t length, std::size_t stages)
{
    return Error{fmt::format("costs.{}: it has {}, the plan has {}; give one per stage", what, traces::counted(length, "entry"),
                             traces::counted(stages, "stage"))};
}

// Sizes of each stage by the model: activations, weights, gradients, optimizer state, and what crosses to the next stage.
struct ModelSizes {
    std::vector<LayerCounts> stages;
    Bytes input = 0;    // of the first stage
    Bytes boundary = 0; // the largest
};

ModelSizes modelSizes(const ModelSpec& model, const Partition& partition, Precision precision)
{
    ModelSizes sizes;
    const std::vector<LayerCounts> layers = heldCounts(model, partition.size(), precision);
    std::size_t next = 0;
    constexpr int kTokenBytes = 8; // int64
    sizes.input = tokenInput(model) ? kTokenBytes : valueBytes(precision);
    for (const std::int64_t extent : inputShape(model, model.microbatchRows)) sizes.input *= extent;
    for (const int count : partition) {
        LayerCounts sum;
        for (const LayerCounts& layer : std::span(layers).subspan(next, static_cast<std::size_t>(count))) {
            sum.parameters += layer.parameters;
            sum.forwardFlops += layer.forwardFlops;
            sum.backwardFlops += layer.backwardFlops;
            sum.activationBytes += layer.activationBytes;
            sum.wgradBytes += layer.wgradBytes;
            sum.outputBytes = layer.outputBytes;
        }
        next += static_cast<std::size_t>(count);
        if (next < layers.size()) sizes.boundary = std::max(sizes.boundary, sum.outputBytes);
        sizes.stages.push_back(sum);
    }
    return sizes;
}

Expected<void> assumedTimes(const Plan& plan, CostTable& table)
{
    const CostSpec& costs = plan.costs;
    const std::size_t stages = table.stages.size();
    if (costs.inputGrad.has_value() != costs.weightGrad.has_value())
        return Error{"costs: input_grad and weight_grad are given together or not at all; their sum is the backward"};
    const bool split = costs.inputGrad.has_value();
    const double backward = static_cast<double>(split ? *costs.inputGrad + *costs.weightGrad : costs.backward);
    const double input = split ? static_cast<double>(*costs.inputGrad) : backward / 2;
    const double forward = static_cast<double>(costs.forward);
    const double overlap = costs.overlap ? static_cast<double>(*costs.overlap) : forward + backward;
    for (std::size_t s = 0; s < stages; ++s) {
        const double share = (costs.stageScale.empty() ? 1.0 : costs.stageScale[s]) / plan.pipeline.chunks;
        StageCosts& stage = table.stages[s];
        for (const auto& [member, time, what] : {std::tuple{&StageCosts::forward, forward, "forward"},
                                                 std::tuple{&StageCosts::backward, backward, "backward"},
                                                 std::tuple{&StageCosts::inputGrad, input, "input_grad"},
                                                 std::tuple{&StageCosts::overlap, overlap, "overlap"}}) {
            Expected<TimeNs> rounded = roundedTime(time * share, fmt::format("{} of stage {}", what, s));
            if (!rounded.ok()) return rounded.error();
            stage.*member = rounded.value();
        }
        stage.weightGrad = std::max<TimeNs>(0, stage.backward - stage.inputGrad);
    }
    table.origin = "assumed";
    return {};
}

Expected<void> modelTimes(const Plan& plan, const ModelSizes& sizes, CostTable& table)
{
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
        StageCosts& stage = table.stages[s];
        const double perFlop = 1e9 / plan.costs.flopsPerSecond;
        Expected<TimeNs> ahead = roundedTime(sizes.stages[s].forwardFlops * perFlop, fmt::format("forward of stage {}", s));
        if (!ahead.ok()) return ahead.error();
        Expected<TimeNs> back = roundedTime(sizes.stages[s].backwardFlops * perFlop, fmt::format("backward of stage {}", s));
        if (!back.ok()) return back.error();
        stage.forward = ahead.value();
        stage.backward = back.value();
        stage.inputGrad = stage.backward / 2;
        stage.weightGrad = stage.backward - stage.inputGrad;
        stage.overlap = stage.forward + stage.backward;
    }
    table.origin = fmt::format("estimated from the model at {:.4g} GFLOP/s", plan.costs.flopsPerSecond / 1e9);
    return {};
}

// Times that a model or a run gave, with what the plan says beside them: its factors, and how long a pair takes together.
Expected<void> adjustTimes(const Plan& plan, CostTable& table)
{
    const CostSpec& costs = plan.costs;
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
        StageCosts& stage = table.stages[s];
        if (costs.overlap) stage.overlap = *costs.overlap / plan.pipeline.chunks;
        if (costs.stageScale.empty()) continue;
        for (TimeNs* time : {&stage.forward, &stage.backward, &stage.inputGrad, &stage.overlap}) {
            Expected<TimeNs> scaled =
                roundedTime(static_cast<double>(*time) * costs.stageScale[s], fmt::format("a time of stage {}", s));
            if (!scaled.ok()) return scaled.error();
            *time = scaled.value();
        }
        stage.weightGrad = std::max<TimeNs>(0, stage.backward - stage.inputGrad);
    }
    if (!costs.stageScale.empty()) table.origin += ", scaled by stage";
    return {};
}

Expected<void> addSizes(const Plan& plan, const ModelSizes* sizes, CostTable& table)
{
    const double chunks = plan.pipeline.chunks;
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
        StageCosts& stage = table.stages[s];
        const bool last = s + 1 == table.stages.size();
        if (sizes != nullptr) {
            const Bytes parameters = sizes->stages[s].parameters;
            stage.weightBytes = valueBytes(plan.run.precision) * parameters;
            stage.gradientBytes = kMainBytes * parameters;
            stage.optimizerBytes = plan.run.optimizerValues() * kMainBytes * parameters;
            if (!last) stage.outputBytes = sizes->stages[s].outputBytes;
            stage.inputBytes = s == 0 ? sizes->input : sizes->stages[s - 1].outputBytes;
            // measured sizes stand
            if (stage.activationBytes == 0) stage.activationBytes = sizes->stages[s].activationBytes;
        }
        if (plan.costs.boundaryBytes > 0) {
            if (!last) stage.outputBytes = plan.costs.boundaryBytes;
            stage.inputBytes = plan.costs.boundaryBytes;
        }
        if (plan.costs.activationBytes > 0)
            stage.activationBytes = std::llround(static_cast<double>(plan.costs.activationBytes) / chunks);
        if (plan.costs.wgradBytes > 0)
            stage.wgradBytes = std::llround(static_cast<double>(plan.costs.wgradBytes) / chunks);
        else if (sizes != nullptr && stage.wgradBytes == 0 && sizes->stages[s].activationBytes > 0) // the model's part of what is kept
            stage.wgradBytes = std::llround(static_cast<double>(stage.activationBytes) *
                                            (static_cast<double>(sizes->stages[s].wgradBytes) /
                                             static_cast<double>(sizes->stages[s].activationBytes)));
        if (plan.costs.wgradBytes > 0 && stage.wgradBytes > stage.activationBytes)
            return Error{fmt::format("costs.wgrad_bytes: {} of stage {} would stay until its weight gradient, but its forward keeps "
                                     "only {}; give activation_bytes that are at least as large",
                                     traces::formatSize(stage.wgradBytes), s, traces::formatSize(stage.activationBytes))};
    }
    return {};
}

// Slices of equal work: each takes and keeps its part of what the micro-batch does. The weights are there once.
void cutIntoSlices(int slices, CostTable& table)
{
    if (slices == 1) return;
    const auto part = [slices](std::int64_t whole) { return std::llround(static_cast<double>(whole) / slices); };
    for (StageCosts& stage : table.stages) {
        const bool splits = stage.inputGrad + stage.weightGrad == stage.backward;
        for (TimeNs* time : {&stage.forward, &stage.backward, &stage.inputGrad, &stage.weightGrad, &stage.overlap}) *time = part(*time);
        if (splits) stage.weightGrad = stage.backward - stage.inputGrad; // rounding must not part them
        stage.activationBytes = part(stage.activationBytes);
        stage.wgradBytes = part(stage.wgradBytes);
        stage.inputBytes = part(stage.inputBytes);
        stage.outputBytes = part(stage.outputBytes);
    }
}

// Part of a forward that grows with the position, by FLOPs.
double attentionShareOf(const ModelSpec& model)
{
    double attention = 0;
    double all = 0;
    for (const LayerCounts& layer : layerCounts(model)) {
        attention += layer.attentionFlops;
        all += layer.forwardFlops;
    }
    return all > 0 ? attention / all : 0;
}

void addSliceShares(const Plan& plan, CostTable& table)
{
    if (plan.pipeline.slices == 1) return;
    const double attention = plan.costs.attentionShare ? *plan.costs.attentionShare : attentionShareOf(plan.model);
    if (attention == 0) return;
    SliceShares shares = sliceShares(plan.pipeline.slices, attention, plan.pipeline.slicing);
    if (plan.pipeline.slicing == Slicing::Equal) table.sliceTime = std::move(shares.time);
    else table.sliceSize = std::move(shares.size);
}

Expected<void> addTransfer(const Plan& plan, const ModelSizes* sizes, CostTable& table)
{
    const CostSpec& costs = plan.costs;
    table.transfer = costs.latency;
    table.inside = {costs.latency, costs.bandwidth};
    if (costs.bandwidth <= 0 && plan.machine.between.bytesPerSecond <= 0) return {};
    const Bytes boundary = costs.boundaryBytes > 0 ? costs.boundaryBytes : sizes != nullptr ? sizes->boundary : 0;
    if (boundary == 0)
        return Error{fmt::format("{}: it needs the size of what is sent; give boundary_bytes, or a model",
                                 costs.bandwidth > 0 ? "costs.bandwidth" : "machine.node_bandwidth")};
    if (costs.bandwidth <= 0) return {};
    Expected<TimeNs> time = roundedTime(static_cast<double>(boundary) / plan.pipeline.parts() / costs.bandwidth * 1e9, "the transfer of a boundary");
    if (!time.ok()) return time.error();
    table.transfer += time.value();
    return {};
}

} // namespace

Expected<CostTable> costsOf(const Plan& plan)
{
    const auto stages = static_cast<std::size_t>(plan.stages());
    if (Expected<void> said = checkSaid(plan.costs); !said.ok()) return said.error();
    if (Expected<void> machine = checkMachine(plan.machine, plan.pipeline.ranks); !machine.ok()) return machine.error();
    if (!plan.costs.stageScale.empty() && plan.costs.stageScale.size() != stages)
        return wrongLength("stage_scale", plan.costs.stageScale.size(), stages);
    CostTable table;
    ModelSizes sizes;
    if (!plan.model.empty()) {
        Expected<Partition> partition = partitionOf(plan);
        if (!partition.ok()) return partition.error();
        sizes = modelSizes(plan.model, partition.value(), plan.run.precision);
    }
    const ModelSizes* known = plan.model.empty() ? nullptr : &sizes;

    switch (plan.costs.source) {
    case CostSource::Assumed:
        table.stages.resize(stages);
        if (Expected<void> times = assumedTimes(plan, table); !times.ok()) return times.error();
        break;
    case CostSource::Model:
        if (known == nullptr)
            return Error{"costs.source: \"model\" needs a model; add one, or take \"assumed\""};
        table.stages.resize(stages);
        if (Expected<void> times = modelTimes(plan, sizes, table); !times.ok()) return times.error();
        break;
    case CostSource::Measured:
        if (plan.costs.measured.size() != stages)
            return wrongLength("measured", plan.costs.measured.size(), stages);
        table.stages = plan.costs.measured;
        table.origin = plan.costs.measuredFrom.empty() ? "measured" : "measured: " + plan.costs.measuredFrom;
        break;
    }
    if (plan.costs.optimizer)
        for (StageCosts& stage : table.stages) stage.optimizer = *plan.costs.optimizer / plan.pipeline.chunks;
    if (plan.costs.source != CostSource::Assumed)
        if (Expected<void> adjusted = adjustTimes(plan, table); !adjusted.ok()) return adjusted.error();
    if (Expected<void> added = addSizes(plan, known, table); !added.ok()) return added.error();
    if (Expected<void> transfer = addTransfer(plan, known, table); !transfer.ok()) return transfer.error();
    table.sharding = plan.pipeline.sharding;
    table.machine = plan.machine;
    if (stages > 1) table.tiedBytes = tiedValues(plan.model) * kMainBytes; // its gradients
    cutIntoSlices(plan.pipeline.parts(), table);
    addSliceShares(plan, table);
    table.jitter = plan.costs.jitter;
    table.seed = plan.costs.seed;
    return table;
}

} // namespace stagecraft::engine
