// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/costs_json.h"
#include "engine/plan/machine_json.h"
#include "engine/plan/model_json.h"
#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/plan_object.h"
#include "engine/plan/plan_words.h"

namespace stagecraft::engine {
namespace {

constexpr int kMostSize = 1 << 20; // layers of a stage
constexpr int kMostSteps = 1'000'000;

template <class Enum, std::size_t N>
std::span<const Word<Enum>> choices(const std::array<Word<Enum>, N>& words)
{
    return words;
}

Expected<void> readData(const Json& json, DataSpec& data)
{
    JsonObject object(json, "data");
    object.choice("source", data.source, choices(kDataSourceWords));
    object.text("path", data.path);
    object.text("targets", data.targets);
    object.choice("tokens", data.tokens, choices(kTokenWords));
    return object.finish();
}

Expected<void> readPipeline(const Json& json, PipelineSpec& pipeline)
{
    JsonObject object(json, "pipeline");
    object.text("schedule", pipeline.schedule);
    object.integer("ranks", pipeline.ranks, 1, kMaxStages);
    object.integer("chunks", pipeline.chunks, 1, kMaxStages);
    object.integer("microbatches", pipeline.microbatches, 1, static_cast<int>(kMaxActions / 2));
    object.integer("slices", pipeline.slices, 1, kMaxSlices);
    object.integer("group", pipeline.group, 0, static_cast<int>(kMaxActions / 2));
    object.choice("sharding", pipeline.sharding, choices(kShardingWords));
    object.choice("slicing", pipeline.slicing, choices(kSlicingWords));
    object.choice("concatenation", pipeline.concatenation, choices(kConcatenationWords));
    object.number("offload", pipeline.offload, 0, 1);
    object.boolean("vertical_sync", pipeline.verticalSync);
    object.parsed("memory_limit", pipeline.memoryLimit, &traces::parseSize);
    object.choice("recompute", pipeline.recompute, choices(kRecomputeWords));
    object.text("custom_schedule", pipeline.customSchedule);
    if (pipeline.schedule != "custom" && findFamily(pipeline.schedule) == nullptr) {
        std::string known;
        for (const ScheduleFamily& family : scheduleFamilies()) known += fmt::format("\"{}\", ", family.name);
        object.fail("pipeline.schedule", fmt::format("\"{}\" is not allowed; one of {}\"custom\"", pipeline.schedule, known));
    }
    if (pipeline.schedule != "custom" && !pipeline.customSchedule.empty())
        object.fail("pipeline.custom_schedule", "it is given, but the schedule is \"" + pipeline.schedule +
                                                    "\"; set pipeline.schedule to \"custom\" or leave it out");
    return object.finish();
}

void readOptionalTime(JsonObject& object, std::string_view key, std::optional<TimeNs>& out)
{
    if (!object.has(key)) {
        object.find(key); // known, though not given
        return;
    }
    TimeNs time = 0;
    object.parsed(key, time, &traces::parseDuration);
    out = time;
}

// Backward is the sum of its parts: a file that says another one contradicts itself.
void joinBackward(JsonObject& object, CostSpec& costs)
{
    if (!costs.inputGrad || !costs.weightGrad) return; // one alone is refused with the plan
    const TimeNs sum = *costs.inputGrad > std::numeric_limits<TimeNs>::max() - *costs.weightGrad
                           ? std::numeric_limits<TimeNs>::max() // too long for a plan, which it will say itself
                           : *costs.inputGrad + *costs.weightGrad;
    if (object.has("backward") && costs.backward != sum)
        object.fail("costs.backward", fmt::format("{} is not the sum of input_grad and weight_grad, {}; leave backward out, or "
                                                  "leave the two out",
                                                  traces::exactDuration(costs.backward), traces::exactDuration(sum)));
    costs.backward = sum;
}

Expected<void> readCosts(const Json& json, CostSpec& costs)
{
    JsonObject object(json, "costs");
    object.choice("source", costs.source, choices(kCostSourceWords));
    object.parsed("forward", costs.forward, &traces::parseDuration);
    object.parsed("backward", costs.backward, &traces::parseDuration);
    readOptionalTime(object, "input_grad", costs.inputGrad);
    readOptionalTime(object, "weight_grad", costs.weightGrad);
    joinBackward(object, costs);
    readOptionalTime(object, "overlap", costs.overlap);
    readOptionalTime(object, "optimizer", costs.optimizer);
    object.array("stage_scale", [&](const Json& factor, const std::string& path) -> Expected<void> {
        if (!factor.is_number() || !(factor.get<double>() >= 0) || !(factor.get<double>() <= 1e6))
            return Error{fmt::format("{}: {} is not allowed; a number from 0 to 1e+06", path, JsonObject::shown(factor))};
        costs.stageScale.push_back(factor.get<double>());
        return {};
    });
    object.parsed("activation_bytes", costs.activationBytes, &traces::parseSize);
    object.parsed("wgrad_bytes", costs.wgradBytes, &traces::parseSize);
    object.number("flops_per_second", costs.flopsPerSecond, 1, 1e21);
    object.array("measured", [&](const Json& stage, const std::string& path) {
        return readStageCosts(stage, path, costs.measured.emplace_back());
    });
    object.text("measured_from", costs.measuredFrom);
    if (double share = 0; object.find("attention_share") != nullptr) {
        object.number("attention_share", share, 0, 1);
        costs.attentionShare = share;
    }
    object.parsed("latency", costs.latency, &traces::parseDuration);
    object.parsed("bandwidth", costs.bandwidth, &traces::parseBandwidth);
    object.parsed("boundary_bytes", costs.boundaryBytes, &traces::parseSize);
    object.number("jitter", costs.jitter, 0, 1);
    object.integer("seed", costs.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max());
    return object.finish();
}

void readLossScale(JsonObject& object, RunSpec& run)
{
    const Json* scale = object.find("loss_scale");
    if (scale == nullptr) return;
    if (!scale->is_number() || !isLossScale(scale->get<double>()))
        return object.fail("run.loss_scale", fmt::format("{} is not allowed; a power of two from 1 to 2^60, which changes no bit of a gradient",
                                                         JsonObject::shown(*scale)));
    run.lossScale = scale->get<double>();
}

Expected<void> readRun(const Json& json, RunSpec& run)
{
    JsonObject object(json, "run");
    object.choice("mode", run.mode, choices(kRunModeWords));
    object.choice("device", run.device, choices(kDeviceWords));
    object.choice("precision", run.precision, choices(kPrecisionWords));
    object.integer("steps", run.steps, 1, kMostSteps);
    object.choice("check", run.check, choices(kCheckWords));
    object.choice("optimizer", run.optimizer, choices(kOptimizerWords));
    object.number("learning_rate", run.learningRate, 0, 1e6);
    object.choice("learning_rate_course", run.rateCourse, choices(kRateCourseWords));
    object.integer("warmup_steps", run.warmupSteps, 0, kMostSteps);
    object.number("momentum", run.momentum, 0, 1);
    if (object.find("weight_decay") != nullptr) object.number("weight_decay", run.weightDecay.emplace(), 0, 1e6);
    object.integer("seed", run.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max());
    object.number("clip_norm", run.clipNorm, 0, 1e30);
    readLossScale(object, run);
    object.text("checkpoint", run.checkpoint);
    object.integer("checkpoint_every", run.checkpointEvery, 0, kMostSteps);
    object.text("resume", run.resume);
    object.choice("handoff", run.handoff, choices(kHandoffWords));
    object.integer("handoff_depth", run.handoffDepth, 0, kMostSize);
    object.choice("transport", run.transport, choices(kTransportWords));
    object.array("gpus", [&](const Json& gpu, const std::string& path) -> Expected<void> {
        const bool onCpu = gpu.is_string() && gpu.get_ref<const std::string&>() == kCpuWord;
        const bool numbered = gpu.is_number_integer() && gpu.get<double>() >= 0 && gpu.get<double>() < kMostGpus;
        if (!onCpu && !numbered)
            return Error{fmt::format("{}: {} is not allowed; the number of a GPU from 0 to {}, or \"{}\"", path, JsonObject::shown(gpu), kMostGpus - 1, kCpuWord)};
        run.gpus.push_back(onCpu ? kOnCpu : gpu.get<int>());
        return {};
    });
    object.choice("tracing", run.tracing, choices(kTraceLevelWords));
    object.boolean("tf32", run.tf32);
    object.array("slowdown", [&](const Json& factor, const std::string& path) -> Expected<void> {
        if (!factor.is_number() || !(factor.get<double>() >= 1) || !(factor.get<double>() <= kMostSlowdown))
            return Error{fmt::format("{}: {} is not allowed; a number from 1 to {}", path, JsonObject::shown(factor), kMostSlowdown)};
        run.slowdown.push_back(factor.get<double>());
        return {};
    });
    object.choice("activations", run.activations, choices(kActivationAccountWords));
    return object.finish();
}

// After all that a rule goes by.
void readPartition(JsonObject& object, Plan& plan)
{
    const Json* partition = object.find("partition");
    if (partition == nullptr) return;
    if (partition->is_string()) {
        // measured costs are of this partition; those that `time` goes by are of the one by FLOPs
        Expected<PartitionChoice> choice = partitionChoice(plan.model, partition->get_ref<const std::string&>());
        if (!choice.ok()) return object.fail("partition", choice.error().message);
        if (auto* layers = std::get_if<Partition>(&choice.value())) plan.partition = std::move(*layers);
        else plan.partitionRule = std::get<PartitionRule>(choice.value());
        if (plan.partitionRule != PartitionRule::Time) return;
        plan.partitionRule = PartitionRule::Flops;
        Expected<Plan> timed = partitionedByTime(plan, plan);
        if (!timed.ok()) return object.fail("partition", timed.error().message);
        plan = std::move(timed).value();
        return;
    }
    if (!partition->is_array()) return object.fail("partition", "must be a list [ ... ], a rule or a layout, not " + JsonObject::shown(*partition));
    object.array("partition", [&](const Json& count, const std::string& path) -> Expected<void> {
        if (!count.is_number_integer() || count < 1 || count > kMostSize)
            return Error{fmt::format("{}: {} is not allowed; a whole number from 1 to {}", path, JsonObject::shown(count), kMostSize)};
        plan.partition.push_back(count.get<int>());
        return {};
    });
}

} // namespace

traces::Expected<void> readStageCosts(const Json& json, const std::string& path, StageCosts& out)
{
    constexpr std::int64_t kMost = 1'000'000'000'000'000; // eleven days, or a pebibyte
    JsonObject object(json, path);
    for (const auto& [key, member] : {std::pair{"forward_ns", &StageCosts::forward},
                                      std::pair{"backward_ns", &StageCosts::backward},
                                      std::pair{"input_grad_ns", &StageCosts::inputGrad},
                                      std::pair{"weight_grad_ns", &StageCosts::weightGrad},
                                      std::pair{"overlap_ns", &StageCosts::overlap},
                                      std::pair{"optimizer_ns", &StageCosts::optimizer},
                                      std::pair{"activation_bytes", &StageCosts::activationBytes},
                                      std::pair{"wgrad_bytes", &StageCosts::wgradBytes},
                                      std::pair{"weight_bytes", &StageCosts::weightBytes},
                                      std::pair{"gradient_bytes", &StageCosts::gradientBytes},
                                      std::pair{"optimizer_bytes", &StageCosts::optimizerBytes},
                                      std::pair{"input_bytes", &StageCosts::inputBytes},
                                      std::pair{"output_bytes", &StageCosts::outputBytes}})
        object.integer(key, out.*member, std::int64_t{0}, kMost);
    return object.finish();
}

Expected<Plan> readPlanObject(const Json& json)
{
    JsonObject object(json, "");
    int version = 0;
    if (object.require("stagecraft_plan") != nullptr)
        object.integer("stagecraft_plan", version, kPlanSchemaVersion, kPlanSchemaVersion);
    Plan plan;
    object.text("name", plan.name);
    object.text("description", plan.description);
    if (const Json* model = object.find("model")) object.take(readModel(*model, plan.model));
    if (const Json* data = object.find("data")) object.take(readData(*data, plan.data));
    if (const Json* pipeline = object.find("pipeline")) object.take(readPipeline(*pipeline, plan.pipeline));
    if (const Json* costs = object.find("costs")) object.take(readCosts(*costs, plan.costs));
    if (const Json* machine = object.find("machine")) object.take(readMachine(*machine, plan.machine));
    if (const Json* run = object.find("run")) object.take(readRun(*run, plan.run));
    if (object.sound()) readPartition(object, plan);
    if (Expected<void> read = object.finish(); !read.ok()) return read.error();
    if (Expected<void> sound = checkPlan(plan); !sound.ok()) return sound.error();
    return plan;
}

Expected<Plan> readPlan(std::string_view json)
{
    Expected<Json> parsed = parseJson(json);
    if (!parsed.ok()) return parsed.error();
    return readPlanObject(parsed.value());
}

} // namespace stagecraft::engine
