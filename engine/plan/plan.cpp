// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan.h"

#include "engine/data/dataset.h"
#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_words.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/shard.h"
#include "engine/schedule/validate.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace stagecraft::engine {

using traces::counted;

std::string_view runModeText(RunMode mode) { return wordOf(kRunModeWords, mode); }
std::string_view deviceText(DeviceKind device) { return wordOf(kDeviceWords, device); }
std::string_view checkModeText(CheckMode check) { return wordOf(kCheckWords, check); }

namespace {

struct JudgedRequest {
    Expected<void> possible;
    ScheduleRequest request;
};

// A slice holds at least one position of the sequence.
Expected<void> checkSlices(const Plan& plan)
{
    for (const Layer& layer : plan.model.layers)
        if (const auto* embedding = std::get_if<Embedding>(&layer); embedding && plan.pipeline.slices > embedding->sequence)
            return Error{fmt::format("pipeline.slices: {} slices of a sequence are not allowed, the model's has {}; use at most that many",
                                     plan.pipeline.slices, counted(embedding->sequence, "position"))};
    return {};
}

// The plan's request, judged. Where the family plans by costs, they are those given, or else the plan's, which `own` then holds.
JudgedRequest judgedRequest(const Plan& plan, const CostTable* given, CostTable& own)
{
    ScheduleRequest request = requestOf(plan.pipeline);
    if (Expected<void> shape = checkRequest(request); !shape.ok()) return {.possible = shape, .request = request};
    if (Expected<void> slices = checkSlices(plan); !slices.ok()) return {.possible = slices, .request = request};
    if (!findFamily(request.name)->plansByCosts) return {.possible = {}, .request = request};
    if (given == nullptr) {
        Expected<CostTable> planned = costsOf(plan);
        if (!planned.ok()) return {.possible = planned.error(), .request = request};
        own = std::move(planned).value();
        given = &own;
    }
    request.costs = given;
    request.memoryLimit = plan.pipeline.memoryLimit;
    return {.possible = checkRequest(request), .request = request};
}

Error recomputedAndMoved()
{
    return Error{"pipeline.recompute: activations that are computed again are not kept, and this schedule moves them away to keep them; "
                 "take one of the two"};
}

// Whether the level of sharding can have actions in the schedule.
Expected<void> checkSharding(const PipelineSpec& pipeline, bool asynchronous)
{
    if (!asynchronous || pipeline.sharding < Sharding::Zero2) return {};
    return Error{fmt::format("pipeline.sharding: schedule {} updates its weights within a step, and gradients that are divided are reduced "
                             "once a step; use \"none\" or \"zero1\"",
                             pipeline.schedule)};
}

// A tied table is summed between two stages before its update, and there is one update to do that before.
Expected<void> checkTiedUpdates(const Plan& plan, bool asynchronous)
{
    if (!asynchronous || !plan.model.tiedEmbeddings) return {};
    return Error{fmt::format("model.tied_embeddings: schedule {} updates each stage by itself within a step, and the two copies of the table "
                             "would go apart; take a schedule whose weights change at the end of a step",
                             plan.pipeline.schedule)};
}

} // namespace

// A plan is judged at every key.
ScheduleVerdict judgeSchedule(const Plan& plan)
{
    if (plan.pipeline.schedule == "custom") {
        const Expected<Schedule> own = scheduleOf(plan);
        return {.possible = own.ok() ? Expected<void>{} : Expected<void>{own.error()}};
    }
    CostTable own;
    const auto [possible, request] = judgedRequest(plan, nullptr, own);
    if (!possible.ok()) return {.possible = possible, .nearest = nearestLegal(request)};
    if (request.offload > 0 && plan.pipeline.recompute != Recompute::None) return {.possible = recomputedAndMoved()};
    const bool asynchronous = findFamily(request.name)->asynchronous;
    if (Expected<void> tied = checkTiedUpdates(plan, asynchronous); !tied.ok()) return {.possible = tied};
    return {.possible = checkSharding(plan.pipeline, asynchronous)};
}

double RunSpec::rateOf(int step) const
{
    if (step < warmupSteps) return learningRate * (step + 1) / warmupSteps;
    const double done = static_cast<double>(step - warmupSteps) / std::max(steps - warmupSteps, 1);
    switch (rateCourse) {
    case RateCourse::Constant: return learningRate;
    case RateCourse::Linear: return learningRate * (1 - done);
    case RateCourse::Cosine: return learningRate * (1 + std::cos(std::numbers::pi * done)) / 2;
    }
    return learningRate;
}

int RunSpec::moments() const
{
    switch (optimizer) {
    case OptimizerKind::Sgd: return 0;
    case OptimizerKind::Momentum: return 1;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW: return 2;
    }
    return 0;
}

// At least 1, for it is there to make gradients larger; and far from where those of 32 bits end.
bool isLossScale(double scale)
{
    int exponent = 0;
    return scale >= 1 && scale <= 0x1p60 && std::frexp(scale, &exponent) == 0.5;
}

ScheduleRequest requestOf(const PipelineSpec& pipeline)
{
    const ScheduleFamily* family = findFamily(pipeline.schedule);
    return {.name = pipeline.schedule,
            .ranks = pipeline.ranks,
            .chunks = pipeline.chunks,
            .microbatches = pipeline.microbatches,
            .slices = pipeline.slices,
            .group = family && family->goesInGroups ? pipeline.group : 0,
            .concatenation = family && family->concatenates ? pipeline.concatenation : Concatenation::Direct,
            .verticalSync = family && family->stashesVersions && pipeline.verticalSync,
            .offload = family && family->takesOffload ? pipeline.offload : 0};
}

int Plan::stages() const
{
    return static_cast<int>(std::min<long long>(1LL * pipeline.ranks * pipeline.chunks, std::numeric_limits<int>::max()));
}

int PipelineSpec::parts() const
{
    const ScheduleFamily* family = findFamily(schedule);
    return family && family->concatenates && concatenation == Concatenation::Halving ? 2 : slices;
}

Expected<void> checkEvenStages(const Schedule& schedule)
{
    std::vector<int> held(schedule.order.size(), 0);
    for (const Rank rank : schedule.stageToRank) ++held[index(rank)];
    const auto [fewest, most] = std::minmax_element(held.begin(), held.end());
    if (held.empty() || *fewest == *most) return {};
    return Error{fmt::format("rank {} holds {} and rank {} holds {}; a plan needs the same number on every rank",
                             most - held.begin(), counted(*most, "stage"), fewest - held.begin(), *fewest)};
}

namespace {

// But for what is done to a schedule of any family.
Expected<Schedule> orderedBy(const Plan& plan, const std::stop_token& stop, const CostTable* costs)
{
    const PipelineSpec& pipeline = plan.pipeline;
    if (pipeline.schedule != "custom") {
        CostTable own;
        auto [possible, request] = judgedRequest(plan, costs, own);
        if (!possible.ok()) return possible.error();
        request.stop = stop;
        return generate(request);
    }
    Expected<Schedule> parsed = parseSchedule(pipeline.customSchedule);
    if (!parsed.ok()) return parsed.error().in("pipeline.custom_schedule");
    const Schedule& schedule = parsed.value();
    const auto differs = [](std::string_view what, int planned, int found) {
        return Error{fmt::format("pipeline.{}: the plan says {}, but its custom schedule has {}", what, planned, found)};
    };
    if (Expected<void> even = checkEvenStages(schedule); !even.ok()) return even.error().in("pipeline.custom_schedule");
    if (schedule.ranks != pipeline.ranks) return differs("ranks", pipeline.ranks, schedule.ranks);
    if (schedule.stages() != plan.stages()) return differs("ranks times chunks", plan.stages(), schedule.stages());
    if (schedule.microbatches != pipeline.microbatches)
        return differs("microbatches", pipeline.microbatches, schedule.microbatches);
    if (schedule.slices != pipeline.slices) return differs("slices", pipeline.slices, schedule.slices);
    if (Expected<void> slices = checkSlices(plan); !slices.ok()) return slices.error();
    const ValidationReport report = validate(schedule);
    if (!report.errors.empty()) return Error{report.errors.front().message}.in("pipeline.custom_schedule");
    Expected<Schedule> moved = withOffload(std::move(parsed).value(), pipeline.offload); // a family does so itself
    if (!moved.ok()) return moved.error().in("pipeline.offload");
    return moved;
}

} // namespace

Expected<Schedule> scheduleOf(const Plan& plan, const std::stop_token& stop, const CostTable* costs)
{
    const PipelineSpec& pipeline = plan.pipeline;
    Expected<Schedule> schedule = orderedBy(plan, stop, costs);
    if (!schedule.ok()) return schedule;
    if (Expected<void> possible = checkSharding(pipeline, schedule.value().asynchronous()); !possible.ok()) return possible.error();
    if (Expected<void> possible = checkTiedUpdates(plan, schedule.value().asynchronous()); !possible.ok()) return possible.error();
    schedule = shard(std::move(schedule).value(), pipeline.sharding);
    if (pipeline.recompute == Recompute::None) return schedule;
    if (hasOffload(schedule.value())) return recomputedAndMoved();
    return withRecompute(std::move(schedule).value());
}

Expected<Partition> partitionOf(const Plan& plan)
{
    const int stages = plan.stages();
    const auto layers = static_cast<int>(plan.model.layers.size());
    if (plan.partition.empty()) return partitionByRule(plan);
    if (static_cast<int>(plan.partition.size()) != stages)
        return Error{fmt::format("partition: it has {}, but {} with {} make {}; give one entry per "
                                 "stage, or leave it out for a balanced one",
                                 counted(plan.partition.size(), "entry"), counted(plan.pipeline.ranks, "rank"),
                                 counted(plan.pipeline.chunks, "chunk"), counted(stages, "stage"))};
    for (std::size_t s = 0; s < plan.partition.size(); ++s)
        if (plan.partition[s] < 1)
            return Error{fmt::format("partition: stage {} has {} layers; every stage needs at least one", s, plan.partition[s])};
    const std::int64_t sum = std::accumulate(plan.partition.begin(), plan.partition.end(), std::int64_t{0});
    if (sum != layers)
        return Error{fmt::format("partition: it gives out {}, the model has {}", counted(sum, "layer"), layers)};
    return plan.partition;
}

namespace {

// What the keys of the run say about each other, and about the stages.
Expected<void> checkRun(const Plan& plan)
{
    const RunSpec& run = plan.run;
    if (run.handoffDepth > 0 && run.handoff == HandoffKind::Boxes)
        return Error{fmt::format("run.handoff_depth: {} is not allowed with handoff boxes, where every tensor has its place; 0, or take handoff "
                                 "mutex, ring or semaphore",
                                 run.handoffDepth)};
    if (!run.gpus.empty() && run.device != DeviceKind::Cuda)
        return Error{"run.gpus: the GPUs of a run on the device cpu are not told; take the device cuda, or leave it out"};
    const int replicas = plan.machine.replicas;
    if (!run.gpus.empty() && run.gpus.size() != static_cast<std::size_t>(replicas) * static_cast<std::size_t>(plan.pipeline.ranks))
        return Error{fmt::format("run.gpus: {} given, and the plan has {}{}: one for each{}", traces::counted(run.gpus.size(), "number"),
                                 replicas > 1 ? fmt::format("{} replicas of ", replicas) : "", traces::counted(plan.pipeline.ranks, "rank"),
                                 replicas > 1 ? ", replica by replica" : "")};
    if (!run.slowdown.empty() && run.slowdown.size() != static_cast<std::size_t>(plan.stages()))
        return Error{fmt::format("run.slowdown: {} given, and the plan has {}: one factor for each", traces::counted(run.slowdown.size(), "factor"),
                                 traces::counted(plan.stages(), "stage"))};
    return {};
}

} // namespace

Expected<void> checkPlan(const Plan& plan)
{
    if (!plan.model.empty()) {
        if (Expected<void> model = checkModel(plan.model); !model.ok()) return model.error().in("model");
        if (Expected<Partition> partition = partitionOf(plan); !partition.ok()) return partition.error();
    } else if (!plan.partition.empty() || plan.partitionRule != PartitionRule::Flops) {
        return Error{"partition: there is no model to partition; leave it out, or add a model"};
    }
    if (Expected<void> data = checkData(plan.data, plan.model); !data.ok()) return data.error();
    if (ScheduleVerdict schedule = judgeSchedule(plan); !schedule.possible.ok()) return schedule.possible;
    if (Expected<CostTable> costs = costsOf(plan); !costs.ok()) return costs.error();
    return checkRun(plan);
}

Plan withShape(Plan plan, int ranks, int chunks)
{
    if (plan.pipeline.ranks == ranks && plan.pipeline.chunks == chunks) return plan;
    const int before = plan.stages();
    if (plan.pipeline.ranks != ranks) {
        plan.machine.rankScale.clear();
        plan.machine.lateStart.clear();
        plan.run.gpus.clear();
    }
    plan.pipeline.ranks = ranks;
    plan.pipeline.chunks = chunks;
    if (plan.stages() != before) {
        plan.costs.stageScale.clear();
        plan.run.slowdown.clear();
    }
    return withoutPartition(std::move(plan));
}

Expected<Plan> withCustomSchedule(Plan plan, std::string text)
{
    const Expected<Schedule> schedule = parseSchedule(text);
    if (!schedule.ok()) return schedule.error();
    plan = withShape(std::move(plan), schedule.value().ranks, schedule.value().chunks);
    plan.pipeline.schedule = "custom";
    plan.pipeline.microbatches = schedule.value().microbatches;
    plan.pipeline.slices = schedule.value().slices;
    plan.pipeline.customSchedule = std::move(text);
    if (const Expected<Schedule> sound = scheduleOf(plan); !sound.ok()) return sound.error();
    return plan;
}

Plan withoutPartition(Plan plan)
{
    plan.partition.clear();
    plan.costs.measured.clear();
    plan.costs.measuredFrom.clear();
    if (plan.costs.source == CostSource::Measured)
        plan.costs.source = plan.model.empty() ? CostSource::Assumed : CostSource::Model;
    return plan;
}

} // namespace stagecraft::engine
