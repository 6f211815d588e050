// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/costs_json.h"
#include "engine/plan/machine_json.h"
#include "engine/plan/model_json.h"
#include "engine/plan/plan_files.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/plan_words.h"
#include "traces/format/input_file.h"
#include "traces/format/output_file.h"


namespace stagecraft::engine {
namespace {

// Keys in the order in which a person wants to read them.
using OrderedJson = nlohmann::ordered_json;

// What differs from the default is written, and the source always: a plan file stays as short as what it says.
OrderedJson costsJson(const CostSpec& costs)
{
    const CostSpec defaults;
    OrderedJson json;
    json["source"] = wordOf(kCostSourceWords, costs.source);
    const bool assumed = costs.source == CostSource::Assumed;
    if (assumed || costs.forward != defaults.forward) json["forward"] = traces::exactDuration(costs.forward);
    const bool split = costs.inputGrad && costs.weightGrad; // the backward follows
    if (!split && (assumed || costs.backward != defaults.backward)) json["backward"] = traces::exactDuration(costs.backward);
    if (costs.inputGrad) json["input_grad"] = traces::exactDuration(*costs.inputGrad);
    if (costs.weightGrad) json["weight_grad"] = traces::exactDuration(*costs.weightGrad);
    if (costs.overlap) json["overlap"] = traces::exactDuration(*costs.overlap);
    if (costs.optimizer) json["optimizer"] = traces::exactDuration(*costs.optimizer);
    if (!costs.stageScale.empty()) json["stage_scale"] = costs.stageScale;
    if (costs.activationBytes != 0) json["activation_bytes"] = traces::exactSize(costs.activationBytes);
    if (costs.wgradBytes != 0) json["wgrad_bytes"] = traces::exactSize(costs.wgradBytes);
    if (costs.source == CostSource::Model || costs.flopsPerSecond != defaults.flopsPerSecond)
        json["flops_per_second"] = costs.flopsPerSecond;
    if (!costs.measured.empty()) {
        OrderedJson stages = OrderedJson::array();
        for (const StageCosts& stage : costs.measured) stages.push_back(OrderedJson(stageCostsJson(stage)));
        json["measured"] = std::move(stages);
    }
    if (!costs.measuredFrom.empty()) json["measured_from"] = costs.measuredFrom;
    if (costs.attentionShare) json["attention_share"] = *costs.attentionShare;
    if (costs.latency != 0) json["latency"] = traces::exactDuration(costs.latency);
    if (costs.bandwidth > 0) json["bandwidth"] = fmt::format("{}B/s", costs.bandwidth);
    if (costs.boundaryBytes != 0) json["boundary_bytes"] = traces::exactSize(costs.boundaryBytes);
    if (costs.jitter != 0) json["jitter"] = costs.jitter;
    if (costs.seed != defaults.seed) json["seed"] = costs.seed;
    return json;
}

OrderedJson dataJson(const DataSpec& data)
{
    OrderedJson json{{"source", wordOf(kDataSourceWords, data.source)}};
    if (!data.path.empty()) json["path"] = data.path;
    if (!data.targets.empty()) json["targets"] = data.targets;
    if (data.tokens != DataSpec{}.tokens) json["tokens"] = wordOf(kTokenWords, data.tokens);
    return json;
}

OrderedJson runJson(const RunSpec& run)
{
    OrderedJson json{{"mode", wordOf(kRunModeWords, run.mode)},
                     {"device", wordOf(kDeviceWords, run.device)},
                     {"steps", run.steps},
                     {"check", wordOf(kCheckWords, run.check)},
                     {"optimizer", wordOf(kOptimizerWords, run.optimizer)},
                     {"learning_rate", run.learningRate},
                     {"seed", run.seed}};
    const RunSpec usual;
    if (run.precision != usual.precision) json["precision"] = wordOf(kPrecisionWords, run.precision);
    if (run.rateCourse != usual.rateCourse) json["learning_rate_course"] = wordOf(kRateCourseWords, run.rateCourse);
    if (run.warmupSteps != usual.warmupSteps) json["warmup_steps"] = run.warmupSteps;
    if (run.momentum != usual.momentum) json["momentum"] = run.momentum;
    if (run.weightDecay) json["weight_decay"] = *run.weightDecay;
    if (run.clipNorm != 0) json["clip_norm"] = run.clipNorm;
    if (run.lossScale != 1) json["loss_scale"] = run.lossScale;
    if (!run.checkpoint.empty()) json["checkpoint"] = run.checkpoint;
    if (run.checkpointEvery != 0) json["checkpoint_every"] = run.checkpointEvery;
    if (!run.resume.empty()) json["resume"] = run.resume;
    if (run.handoff != usual.handoff) json["handoff"] = wordOf(kHandoffWords, run.handoff);
    if (run.handoffDepth != usual.handoffDepth) json["handoff_depth"] = run.handoffDepth;
    if (run.transport != usual.transport) json["transport"] = wordOf(kTransportWords, run.transport);
    for (const int gpu : run.gpus) json["gpus"].push_back(gpu == kOnCpu ? OrderedJson(kCpuWord) : OrderedJson(gpu));
    if (run.tracing != usual.tracing) json["tracing"] = wordOf(kTraceLevelWords, run.tracing);
    if (run.tf32) json["tf32"] = true;
    if (!run.slowdown.empty()) json["slowdown"] = run.slowdown;
    if (run.activations != usual.activations) json["activations"] = wordOf(kActivationAccountWords, run.activations);
    return json;
}

} // namespace

Json stageCostsJson(const StageCosts& costs)
{
    return {{"forward_ns", costs.forward},
            {"backward_ns", costs.backward},
            {"input_grad_ns", costs.inputGrad},
            {"weight_grad_ns", costs.weightGrad},
            {"overlap_ns", costs.overlap},
            {"optimizer_ns", costs.optimizer},
            {"activation_bytes", costs.activationBytes},
            {"wgrad_bytes", costs.wgradBytes},
            {"weight_bytes", costs.weightBytes},
            {"gradient_bytes", costs.gradientBytes},
            {"optimizer_bytes", costs.optimizerBytes},
            {"input_bytes", costs.inputBytes},
            {"output_bytes", costs.outputBytes}};
}

std::string writePlan(const Plan& plan)
{
    OrderedJson json{{"stagecraft_plan", kPlanSchemaVersion}, {"name", plan.name}};
    if (!plan.description.empty()) json["description"] = plan.description;
    if (!plan.model.empty()) json["model"] = modelJson(plan.model);
    if (plan.data != DataSpec{}) json["data"] = dataJson(plan.data);
    if (!plan.partition.empty()) json["partition"] = plan.partition;
    else if (plan.partitionRule != PartitionRule::Flops) json["partition"] = wordOf(kPartitionWords, plan.partitionRule);
    OrderedJson pipeline{{"schedule", plan.pipeline.schedule},
                         {"ranks", plan.pipeline.ranks},
                         {"chunks", plan.pipeline.chunks},
                         {"microbatches", plan.pipeline.microbatches}};
    if (plan.pipeline.slices != 1) pipeline["slices"] = plan.pipeline.slices;
    if (plan.pipeline.slicing != Slicing::Equal) pipeline["slicing"] = wordOf(kSlicingWords, plan.pipeline.slicing);
    if (plan.pipeline.group != 0) pipeline["group"] = plan.pipeline.group;
    if (plan.pipeline.concatenation != Concatenation::Direct)
        pipeline["concatenation"] = wordOf(kConcatenationWords, plan.pipeline.concatenation);
    if (plan.pipeline.offload != 0) pipeline["offload"] = plan.pipeline.offload;
    if (plan.pipeline.verticalSync) pipeline["vertical_sync"] = true;
    if (plan.pipeline.memoryLimit != 0) pipeline["memory_limit"] = traces::exactSize(plan.pipeline.memoryLimit);
    if (plan.pipeline.sharding != Sharding::None) pipeline["sharding"] = wordOf(kShardingWords, plan.pipeline.sharding);
    if (plan.pipeline.recompute != Recompute::None) pipeline["recompute"] = wordOf(kRecomputeWords, plan.pipeline.recompute);
    if (!plan.pipeline.customSchedule.empty()) pipeline["custom_schedule"] = plan.pipeline.customSchedule;
    json["pipeline"] = std::move(pipeline);
    json["costs"] = costsJson(plan.costs);
    if (plan.machine != MachineModel{}) json["machine"] = machineJson(plan.machine);
    json["run"] = runJson(plan.run);
    return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Expected<Plan> loadPlan(const std::filesystem::path& file)
{
    const Expected<std::string> text = traces::readWholeFile(file);
    if (!text.ok()) return text.error();
    Expected<Plan> plan = readPlan(text.value());
    if (!plan.ok()) return plan.error().in(file.string());
    return withWholePaths(std::move(plan).value(), file.parent_path());
}

Expected<void> savePlan(const Plan& plan, const std::filesystem::path& file)
{
    return traces::writeWholeFile(file, writePlan(withPathsSeenFrom(plan, file.parent_path())));
}

} // namespace stagecraft::engine
