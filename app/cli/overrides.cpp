// SPDX-License-Identifier: Apache-2.0
#include "app/cli/overrides.h"

#include "app/cli/machine_overrides.h"

#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_words.h"
#include "engine/schedule/schedule.h"
#include "traces/base/parse_list.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

namespace stagecraft::cli {

namespace {

using engine::Plan;
using traces::Bytes;
using traces::TimeNs;


std::string familyNames()
{
    std::vector<std::string> names;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) names.push_back(family.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

Expected<void> applySchedule(Plan& plan, const Overrides& given)
{
    if (!given.schedule || namesScheduleFile(given)) return {};
    const std::string& name = *given.schedule;
    if (name == "custom" && plan.pipeline.customSchedule.empty())
        return Error{"--schedule custom: the plan holds no schedule of its own; give the schedule's file instead"};
    if (name != "custom" && !engine::findFamily(name))
        return Error{fmt::format("--schedule {}: no such schedule and no such file; there are: {}", name, familyNames())};
    plan.pipeline.schedule = name;
    if (name != "custom") plan.pipeline.customSchedule.clear();
    return {};
}

// Layers per stage, a rule for them, or a layout. `before` has the costs that were measured before the shape was changed.
Expected<void> applyPartition(Plan& plan, const Plan& before, const Overrides& given)
{
    if (!given.partition) return {};
    const std::string& text = *given.partition;
    if (plan.model.empty())
        return Error{fmt::format("--partition {}: the plan has no model whose layers could be given out; leave it out, or take a plan with one", text)};
    const bool byTime = engine::partitionRuleOf(text) == engine::PartitionRule::Time;
    if (text.find_first_of("+-0123456789") != text.find_first_not_of(' ')) { // not a list
        Expected<Plan> partitioned = byTime ? engine::partitionedByTime(before, plan) : engine::withPartition(plan, text);
        if (!partitioned.ok()) return partitioned.error().in("--partition " + text);
        plan = std::move(partitioned).value();
        if (const auto used = engine::partitionOf(plan); !used.ok()) return used.error().in("--partition " + text);
        return {};
    }
    const auto layers = static_cast<long long>(plan.model.layers.size());
    const auto taken = traces::parseList<int>(text, [layers](std::string_view cell) -> Expected<int> {
        const Expected<long long> count = parseWhole("--partition", traces::trimmed(cell), 1, layers);
        return count.ok() ? Expected<int>(static_cast<int>(count.value())) : count.error();
    });
    if (!taken.ok()) return taken.error();
    const engine::Partition& partition = taken.value();
    if (static_cast<int>(partition.size()) != plan.stages())
        return Error{fmt::format("--partition {}: it has {}, but {} with {} make {}; give one per stage", text,
                                 traces::counted(partition.size(), "entry"), traces::counted(plan.pipeline.ranks, "rank"),
                                 traces::counted(plan.pipeline.chunks, "chunk"), traces::counted(plan.stages(), "stage"))};
    if (const long long sum = std::accumulate(partition.begin(), partition.end(), 0LL); sum != layers)
        return Error{fmt::format("--partition {}: it gives out {}, the model has {}", text, traces::counted(sum, "layer"), layers)};
    plan = engine::withLayers(std::move(plan), partition);
    return {};
}

Expected<void> applyShape(Plan& plan, const Overrides& given)
{
    if (namesScheduleFile(given) && (given.ranks || given.chunks || given.microbatches || given.slices)) {
        return Error{fmt::format("--schedule {}: a file says itself how many ranks, chunks, micro-batches and slices there are; leave "
                                 "--ranks, --chunks, --microbatches and --slices out",
                                 *given.schedule)};
    }
    long long ranks = plan.pipeline.ranks;
    long long chunks = plan.pipeline.chunks;
    long long microbatches = plan.pipeline.microbatches;
    long long slices = plan.pipeline.slices;
    const auto whole = [](std::string_view option, long long most) {
        return [=](std::string_view text) { return parseWhole(option, text, 1, most); };
    };
    // parseWhole names the option itself, so the errors are passed on as they are
    for (const auto& [option, text, target, most] :
         {std::tuple{"--ranks", &given.ranks, &ranks, static_cast<long long>(engine::kMaxStages)},
          std::tuple{"--chunks", &given.chunks, &chunks, static_cast<long long>(engine::kMaxStages)},
          std::tuple{"--microbatches", &given.microbatches, &microbatches, engine::kMaxActions / 2},
          std::tuple{"--slices", &given.slices, &slices, static_cast<long long>(engine::kMaxSlices)}}) {
        if (!*text) continue;
        const Expected<long long> value = whole(option, most)(**text);
        if (!value.ok()) return value.error();
        *target = value.value();
    }
    if (ranks * chunks > engine::kMaxStages) {
        return Error{fmt::format("--ranks {} with --chunks {} makes {} stages; at most {} are possible", ranks, chunks,
                                 ranks * chunks, engine::kMaxStages)};
    }
    const Plan before = plan;
    if (given.ranks || given.chunks) {
        plan = engine::withShape(std::move(plan), static_cast<int>(ranks), static_cast<int>(chunks));
        // whoever names a number, be it the plan's own, asks for a new partition
        if (!plan.partition.empty()) plan = engine::withoutPartition(std::move(plan));
    }
    plan.pipeline.microbatches = static_cast<int>(microbatches);
    plan.pipeline.slices = static_cast<int>(slices);
    return applyPartition(plan, before, given);
}

// --backward against --input-grad and --weight-grad, which split it.
Expected<void> applyBackward(Plan& plan, const Overrides& given)
{
    engine::CostSpec& costs = plan.costs;
    if (given.backward) {
        if (auto taken = take("--backward", given.backward, costs.backward, traces::parseDuration); !taken.ok())
            return taken;
        costs.inputGrad.reset();
        costs.weightGrad.reset();
    }
    const std::optional<TimeNs> asked = given.backward ? std::optional(costs.backward) : std::nullopt;
    if (auto taken = take("--input-grad", given.inputGrad, costs.inputGrad, traces::parseDuration); !taken.ok())
        return taken;
    if (auto taken = take("--weight-grad", given.weightGrad, costs.weightGrad, traces::parseDuration); !taken.ok())
        return taken;
    if (!given.inputGrad && !given.weightGrad) return {};

    if (!costs.inputGrad || !costs.weightGrad) {
        return Error{fmt::format("{} alone does not split the backward; give {} too",
                                 given.inputGrad ? "--input-grad" : "--weight-grad",
                                 given.inputGrad ? "--weight-grad" : "--input-grad")};
    }
    if (*costs.inputGrad > std::numeric_limits<TimeNs>::max() - *costs.weightGrad) {
        return Error{"--input-grad and --weight-grad: their sum is too long a time"};
    }
    costs.backward = *costs.inputGrad + *costs.weightGrad;
    if (asked && *asked != costs.backward) {
        return Error{fmt::format(
            "--backward {}: with --input-grad and --weight-grad the backward is their sum, {}; leave --backward out",
            *given.backward, traces::formatDuration(costs.backward))};
    }
    return {};
}

// A plan that took its times from its model or a run has none to assume beside the one that was given: a backward takes twice
// its forward, for it has two matrix products where that has one.
void assumeTheOther(engine::CostSpec& costs, const Overrides& given)
{
    const bool backward = given.backward || given.inputGrad;
    if (!given.forward) costs.forward = costs.backward / 2;
    else if (!backward) costs.backward = 2 * std::min(costs.forward, std::numeric_limits<TimeNs>::max() / 2);
}

Expected<void> applyCosts(Plan& plan, const Overrides& given)
{
    engine::CostSpec& costs = plan.costs;
    const bool assumedBefore = costs.source == engine::CostSource::Assumed;
    const bool givesTimes = given.forward || given.backward || given.inputGrad || given.weightGrad;
    if (givesTimes && !assumedBefore) {
        costs.source = engine::CostSource::Assumed;
        costs.inputGrad.reset();
        costs.weightGrad.reset();
    }
    if (auto done = applyBackward(plan, given); !done.ok()) return done;
    if (auto taken = take("--forward", given.forward, costs.forward, traces::parseDuration); !taken.ok()) return taken;
    if (givesTimes && !assumedBefore) assumeTheOther(costs, given);

    const auto jitter = [](std::string_view text) -> Expected<double> {
        const Expected<double> value = traces::parseFraction(text);
        if (value.ok() && !(value.value() >= 0 && value.value() <= 1)) {
            return Error{fmt::format("'{}' is not allowed; 0% to 100%", text)};
        }
        return value;
    };
    for (const auto& taken : {take("--overlap", given.overlap, costs.overlap, traces::parseDuration),
                              take("--optimizer", given.optimizer, costs.optimizer, traces::parseDuration),
                              take("--stage-scale", given.stageScale, costs.stageScale, [](std::string_view text) { return parseFactors(text, "stage", kScales); }),
                              take("--latency", given.latency, costs.latency, traces::parseDuration),
                              take("--bandwidth", given.bandwidth, costs.bandwidth, traces::parseBandwidth),
                              take("--boundary-bytes", given.boundaryBytes, costs.boundaryBytes, traces::parseSize),
                              take("--activation-bytes", given.activationBytes, costs.activationBytes, traces::parseSize),
                              take("--wgrad-bytes", given.wgradBytes, costs.wgradBytes, traces::parseSize),
                              take("--jitter", given.jitter, costs.jitter, jitter)}) {
        if (!taken.ok()) return taken;
    }
    if (given.bandwidth && costs.boundaryBytes == 0 && plan.model.empty()) {
        return Error{
            fmt::format("--bandwidth {}: nothing says how much is sent; give --boundary-bytes, or a plan with a model",
                        *given.bandwidth)};
    }
    return {};
}

// "a does", "a and b do": the schedules of a quality, for a sentence.
std::string namesThat(bool engine::ScheduleFamily::*quality)
{
    std::vector<std::string> names;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        if (family.*quality) names.push_back(family.name);
    return fmt::format("{} {}", fmt::join(names, " and "), names.size() == 1 ? "does" : "do");
}

// An option that the schedule would leave alone is refused; a plan's own value may wait for another schedule.
Expected<void> applyPlanning(Plan& plan, const Overrides& given)
{
    const std::string& name = namesScheduleFile(given) ? *given.schedule : plan.pipeline.schedule;
    const engine::ScheduleFamily* family = engine::findFamily(name);
    if (given.memoryLimit && !(family && family->plansByCosts)) {
        return Error{fmt::format("--memory-limit {}: schedule {} does not plan for a limit, {}; leave it out, and read the peak "
                                 "memory of each rank from the result",
                                 *given.memoryLimit, name, namesThat(&engine::ScheduleFamily::plansByCosts))};
    }
    if (given.group && !(family && family->goesInGroups)) {
        return Error{fmt::format("--group {}: schedule {} does not go in groups of micro-batches, {}; leave it out", *given.group, name,
                                 namesThat(&engine::ScheduleFamily::goesInGroups))};
    }
    if (given.concatenation && !(family && family->concatenates)) {
        return Error{fmt::format("--concatenation {}: schedule {} does not concatenate units, {}; leave it out", *given.concatenation, name,
                                 namesThat(&engine::ScheduleFamily::concatenates))};
    }
    if (given.concatenation) {
        const auto way = engine::meaningOf(engine::kConcatenationWords, *given.concatenation);
        if (!way) return Error{fmt::format("--concatenation {}: not known; direct, doubling or halving", *given.concatenation)};
        plan.pipeline.concatenation = *way;
    }
    if (given.slicing) {
        const auto way = engine::meaningOf(engine::kSlicingWords, *given.slicing);
        if (!way) return Error{fmt::format("--slicing {}: not known; equal or balanced", *given.slicing)};
        if (family && !family->cutsSequences)
            return Error{fmt::format("--slicing {}: schedule {} takes sequences whole; leave it out, or take seq1f1b", *given.slicing, name)};
        plan.pipeline.slicing = *way;
    }
    if (given.attentionShare) {
        const Expected<double> share = traces::parseFraction(*given.attentionShare);
        if (!share.ok()) return share.error().in("--attention-share");
        if (!(share.value() >= 0 && share.value() <= 1))
            return Error{fmt::format("--attention-share {} is not allowed; 0 to 1, or 0% to 100%", *given.attentionShare)};
        if (family && !family->cutsSequences)
            return Error{fmt::format("--attention-share {}: schedule {} takes sequences whole; leave it out, or take seq1f1b",
                                     *given.attentionShare, name)};
        plan.costs.attentionShare = share.value();
    }
    if (given.verticalSync) {
        if (!(family && family->stashesVersions))
            return Error{fmt::format("--vertical-sync: schedule {} does not keep the weights of each forward, {}; leave it out", name,
                                     namesThat(&engine::ScheduleFamily::stashesVersions))};
        plan.pipeline.verticalSync = true;
    }
    if (given.offload) {
        const Expected<double> share = traces::parseFraction(*given.offload);
        if (!share.ok()) return share.error().in("--offload");
        if (!(share.value() >= 0 && share.value() <= 1)) return Error{fmt::format("--offload {} is not allowed; 0 to 1, or 0% to 100%", *given.offload)};
        if (family && !family->takesOffload)
            return Error{fmt::format("--offload {}: schedule {} {}; leave it out", *given.offload, name,
                                     name == "bpipe" ? "moves activations itself" : "keeps no activations for a backward")};
        plan.pipeline.offload = share.value();
    }
    if (given.group) {
        const Expected<long long> size = parseWhole("--group", *given.group, 0, engine::kMaxActions / 2);
        if (!size.ok()) return size.error();
        plan.pipeline.group = static_cast<int>(size.value());
    }
    if (given.sharding) {
        const std::optional<engine::Sharding> sharding = engine::shardingOf(*given.sharding);
        if (!sharding) return Error{fmt::format("--sharding {}: not known; none, zero1, zero2 or zero3", *given.sharding)};
        plan.pipeline.sharding = *sharding;
    }
    if (Expected<void> taken = take("--memory-limit", given.memoryLimit, plan.pipeline.memoryLimit, traces::parseSize); !taken.ok()) return taken;
    if (given.memoryLimit && plan.pipeline.memoryLimit == 0) // in a plan that is none
        return Error{fmt::format("--memory-limit {}: a rank keeps the activations of at least one micro-batch; give what it may keep, or "
                                 "leave the limit out",
                                 *given.memoryLimit)};
    return {};
}

// Any that a plan may have.
Expected<std::uint64_t> parseSeed(std::string_view text)
{
    std::uint64_t seed = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (code == std::errc{} && end == text.data() + text.size()) return seed;
    return Error{fmt::format("--seed {} is not allowed; a whole number from 0 to {}", text, std::numeric_limits<std::uint64_t>::max())};
}

} // namespace

bool namesScheduleFile(const Overrides& given)
{
    std::error_code ignored;
    return given.schedule && *given.schedule != "custom" && !engine::findFamily(*given.schedule) &&
           std::filesystem::exists(*given.schedule, ignored);
}

Expected<long long> parseWhole(std::string_view option, std::string_view text, long long least, long long most)
{
    long long value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc::invalid_argument || end != text.data() + text.size()) {
        return Error{fmt::format("{} {}: not a whole number; {} to {}", option, text, least, most)};
    }
    if (code != std::errc{} || value < least || value > most) {
        return Error{fmt::format("{} {} is not allowed; {} to {}", option, text, least, most)};
    }
    return value;
}

void addOverrides(CLI::App& verb, Overrides& given)
{
    const char* group = "Changes to the plan";
    const auto option = [&](const char* name, Overrides::Text& target, const char* type, const char* help) {
        verb.add_option_function<std::string>(
                name, [&target](const std::string& text) { target = text; }, help)
            ->type_name(type)
            ->group(group);
    };
    option("--schedule", given.schedule, "NAME|FILE", "A schedule's name (list schedules), or a file in its text form");
    option("--ranks", given.ranks, "P", "Number of ranks; the plan's model is partitioned anew");
    option("--chunks", given.chunks, "V", "Stages per rank; list schedules tells how many each takes");
    option("--partition", given.partition, "N,N,...|RULE|LAYOUT",
           "Layers of each stage; or what the stages are to share evenly: flops (the default), uniform (numbers of layers), parameters, time (as "
           "measured) or memory; or a layout as Megatron-LM has it, such as 'Et*3|(tt|)*3,L'");
    option("--microbatches", given.microbatches, "M", "Micro-batches per step; their size stays");
    option("--slices", given.slices, "K", "Slices of each sequence; seq1f1b takes any number, the others 1");
    option("--slicing", given.slicing, "equal|balanced", "Slices of one length, or of one time where attention grows with the position");
    option("--attention-share", given.attentionShare, "0..1", "Share of a forward that is attention, for slices; the model's unless given");
    option("--group", given.group, "G", "Micro-batches of a group, for interleaved (through a chunk before the next; 0: PyTorch's rule) and pipedream-2bw (of an "
           "update; 0: as many as ranks)");
    option("--sharding", given.sharding, "none|zero1|zero2|zero3",
           "What replicas of the pipeline divide: optimizer state, gradients too, weights too (FSDP). The last two add REDUCE_GRAD, UNSHARD "
           "and RESHARD actions");
    option("--concatenation", given.concatenation, "direct|doubling|halving", "How chimera goes on beyond a unit of micro-batches");
    verb.add_flag("--vertical-sync", given.verticalSync, "pipedream: on all stages a micro-batch goes by the version of the weights that the first stage had")
        ->disable_flag_override()
        ->group(group);
    option("--offload", given.offload, "0..1", "Share of the activations of a rank that goes to the host until its backward, longest-lived first");
    option("--memory-limit", given.memoryLimit, "X",
           "Bound on the activations of a rank, for schedules that plan by it (zb-auto, zb-v-auto)");
    option("--recompute", given.recompute, "none|full", "full: a forward keeps its input alone, and computes the rest again before the backward");
    option("--precision", given.precision, "fp32|bf16", "Of weights, activations and gradients; bf16 keeps a main copy of the weights in float32");
    option("--seed", given.seed, "N", "Of the jitter; of weights and data in a run");
    group =
        "Costs (times take ns us ms s; sizes B KiB MiB GiB), for simulations; a run takes from them what transfers cost in "
        "mode emulated";
    option("--forward", given.forward, "T", "Forward of one rank for one micro-batch, through all its chunks. Where the plan takes its times from its model or a "
           "run, and --backward is not given, the backward takes twice as long");
    option("--backward", given.backward, "T", "Full backward, likewise");
    option("--input-grad", given.inputGrad, "T", "Input gradient; with --weight-grad, backward is their sum");
    option("--weight-grad", given.weightGrad, "T", "Weight gradient");
    option("--overlap", given.overlap, "T", "A forward and a backward executed together; their sum unless given");
    option("--optimizer", given.optimizer, "T", "Update of the weights of one rank; not simulated unless given or measured");
    option("--stage-scale", given.stageScale, "x,x,...", "One factor on the times per stage");
    option("--latency", given.latency, "T", "Of a transfer between two ranks");
    option("--bandwidth", given.bandwidth, "B/s", "Of a transfer, such as 25GB/s; needs --boundary-bytes or a model");
    option("--boundary-bytes", given.boundaryBytes, "X", "Handed from stage to stage per micro-batch");
    option("--activation-bytes", given.activationBytes, "X", "Kept by a forward per micro-batch of a rank");
    option("--wgrad-bytes", given.wgradBytes, "X", "The part of it that stays until the weight gradient");
    option("--jitter", given.jitter, "5%", "Relative standard deviation of every action's time: normal, cut at 3 sigma");
    addMachineOverrides(verb, given);
}

Expected<Plan> withOverrides(Plan plan, const Overrides& given)
{
    for (const auto step : {applySchedule, applyShape, applyPlanning, applyCosts, applyMachine}) {
        if (auto done = step(plan, given); !done.ok()) return done.error();
    }
    if (given.precision) {
        const auto precision = engine::meaningOf(engine::kPrecisionWords, *given.precision);
        if (!precision) return Error{fmt::format("--precision {}: not known; fp32 or bf16", *given.precision)};
        plan.run.precision = *precision;
    }
    if (given.seed) {
        const Expected<std::uint64_t> seed = parseSeed(*given.seed);
        if (!seed.ok()) return seed.error();
        plan.costs.seed = seed.value();
        plan.run.seed = seed.value();
    }
    return plan;
}

} // namespace stagecraft::cli
