// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/runnable.h"

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/data/data_fit.h"
#include "engine/plan/plan_words.h"
#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/gpu_places.h"
#include "engine/runtime/memory_need.h"
#include "engine/runtime/nccl_choice.h"
#include "engine/schedule/circle_text.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/shard.h"
#include "engine/schedule/validate.h"
#include "engine/transport/process_group.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace stagecraft::runtime {

using namespace engine;
using traces::ActionKind;
using traces::Stage;

namespace {

constexpr int kMostThreads = 256; // of mode threads: more ranks than this no host runs at the same time

constexpr bool executes(ActionKind kind)
{
    switch (kind) {
    case ActionKind::Forward:
    case ActionKind::Backward:
    case ActionKind::InputGrad:
    case ActionKind::WeightGrad:
    case ActionKind::Overlap:
    case ActionKind::Recompute:
    case ActionKind::Offload:
    case ActionKind::Reload:
    case ActionKind::Unshard:
    case ActionKind::Reshard:
    case ActionKind::ReduceGrad:
    case ActionKind::Optimizer: return true;
    default: return traces::isTransfer(kind); // which it makes by itself
    }
}

const Action* firstUnknown(const Schedule& schedule)
{
    for (const auto& rank : schedule.order)
        for (const Action& action : rank)
            if (!executes(action.kind())) return &action;
    return nullptr;
}

// A stage both of whose copies one rank holds: the two would wait for each other to add up their gradients.
std::optional<Stage> heldTwice(const Schedule& schedule)
{
    if (!schedule.twoDirections()) return std::nullopt;
    for (int s = 0; s < schedule.stages(); ++s)
        if (schedule.rankOf(traces::Flow::Down, Stage{s}) == schedule.rankOf(traces::Flow::Up, Stage{s})) return Stage{s};
    return std::nullopt;
}

bool updatesByItself(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.kind() == ActionKind::Optimizer; });
    });
}

// Why the engine does not run it; empty: it does.
std::string obstacle(const Schedule& schedule, bool tied = false)
{
    if (const Action* unknown = firstUnknown(schedule))
        return fmt::format("the live engine cannot execute {} ({})", traces::toText(*unknown), traces::kindName(unknown->kind()));
    if (const std::optional<Stage> twice = heldTwice(schedule))
        return fmt::format("rank {} holds both copies of stage {}, and the live engine adds up their gradients between two ranks",
                           schedule.rankOf(traces::Flow::Down, *twice).value, twice->value);
    if (schedule.twoDirections() && updatesByItself(schedule))
        return "the live engine updates the two copies of the weights at the end of a step, and this has an OPTIMIZER of its own";
    if (tied && schedule.stages() > 1 && updatesByItself(schedule))
        return "the live engine updates the two copies of a tied table at the end of a step, and this has an OPTIMIZER of its own";
    return {};
}

// "naive, gpipe, ... or hanayo": the families that run, by a small schedule of each.
std::string runningFamilies()
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies()) {
        const auto sample = generate({.name = family.name, .ranks = 4, .chunks = family.minChunks, .microbatches = 8});
        if (sample.ok() && obstacle(sample.value()).empty()) names.push_back(family.name);
    }
    const std::string last = names.back();
    names.pop_back();
    return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

Expected<void> checkActions(const Plan& plan, const Schedule& schedule)
{
    const std::string why = obstacle(schedule, plan.model.tiedEmbeddings);
    if (why.empty()) return {};
    return Error{fmt::format("schedule {}: {}. Take {}, or simulate this one.", schedule.name, why, runningFamilies())};
}

Expected<void> checkSlices(const Plan& plan, const Schedule& schedule)
{
    if (schedule.slices == 1) return {};
    if (schedule.twoDirections()) { // halves of micro-batches
        if (plan.model.microbatchRows % schedule.slices == 0) return {};
        return Error{fmt::format("schedule {} takes micro-batches back in halves, and they have {}: give an even number of rows, or take another "
                                 "concatenation",
                                 schedule.name, traces::counted(plan.model.microbatchRows, "row"))};
    }
    const auto* embedding = std::get_if<Embedding>(&plan.model.layers.front());
    if (embedding == nullptr)
        return Error{fmt::format("schedule {} cuts sequences into {} slices, and the model has no sequences that can be cut: it starts with {}. Take "
                                 "1 slice, or a model that starts with an embedding.",
                                 schedule.name, schedule.slices, layerName(plan.model.layers.front()))};
    for (const Layer& layer : plan.model.layers)
        if (std::holds_alternative<TorchScript>(layer))
            return Error{fmt::format("schedule {} cuts sequences into {} slices, and {} takes them whole: take 1 slice, or a model without it",
                                     schedule.name, schedule.slices, layerName(layer))};
    if (schedule.slices <= embedding->sequence) return {};
    return Error{fmt::format("schedule {} cuts sequences into {} slices, and the model's have {} positions: take at most as many slices",
                             schedule.name, schedule.slices, embedding->sequence)};
}

// What the plan says of its machine that a run has no part in; empty: nothing.
std::string leftOutOf(const MachineModel& machine)
{
    const MachineModel usual;
    std::vector<std::string_view> keys;
    const auto note = [&](std::string_view key, bool said) {
        if (said) keys.push_back(key);
    };
    note("rank_scale", !machine.rankScale.empty());
    note("late_start", !machine.lateStart.empty());
    note("send", machine.send != usual.send);
    note("transfers", machine.transfers != usual.transfers);
    note("shared_links", machine.sharedLinks);
    note("ranks_per_node", machine.ranksPerNode != usual.ranksPerNode);
    note("barrier", machine.barrier);
    if (keys.empty()) return {};
    return fmt::format("of the plan's machine a run takes the memory of a rank and the replicas; {} {} simulated and not run", fmt::join(keys, ", "),
                       keys.size() == 1 ? "is" : "are");
}

// All gradients of the model together exist at one moment alone: at the end of a step.
Expected<void> checkClipping(const RunSpec& run, const Schedule& schedule)
{
    if (run.clipNorm == 0 || !(schedule.asynchronous() || updatesByItself(schedule))) return {};
    return Error{fmt::format("run.clip_norm: schedule {} updates a stage within the step, when others have no gradients yet, and the norm is that of "
                             "all gradients together; leave it out, or take a schedule that updates at the end of a step",
                             schedule.name)};
}

Expected<void> checkCheckpoints(const RunSpec& run, const Schedule& schedule)
{
    if (run.checkpoint.empty() && run.checkpointEvery > 0)
        return Error{fmt::format("run.checkpoint_every: every {} steps, but run.checkpoint names no folder; give one, or leave it out", run.checkpointEvery)};
    if (!run.checkpoint.empty() && schedule.inference())
        return Error{fmt::format("run.checkpoint: schedule {} trains nothing, so there is nothing to keep; leave it out", schedule.name)};
    return {};
}

// What a layer does, whatever file it is read from: the checkpoint has its values.
Layer withoutFile(Layer layer)
{
    if (auto* module = std::get_if<TorchScript>(&layer)) module->file.clear();
    return layer;
}

// Weights of another model may have the same names and shapes.
Expected<void> checkSameModel(const Checkpoint& from, const ModelSpec& model)
{
    const ModelSpec& other = from.plan.model;
    const auto refuse = [&](std::string_view what, std::string_view its, std::string_view ours) {
        return Error{fmt::format("run.resume: {} is of another model: {} is {}, and the plan's is {}. Take the model that it was made of, or leave resume out",
                                 from.folder.string(), what, its, ours)};
    };
    if (other.layers.size() != model.layers.size())
        return refuse("the number of its layers", std::to_string(other.layers.size()), std::to_string(model.layers.size()));
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        if (withoutFile(other.layers[i]) != withoutFile(model.layers[i])) {
            const std::string its = layerName(other.layers[i]);
            const std::string ours = layerName(model.layers[i]);
            return refuse(fmt::format("layer {}", i), its == ours ? its + " with other numbers" : its, ours);
        }
    const auto tied = [](const ModelSpec& each) { return each.tiedEmbeddings ? "tied" : "not tied"; };
    if (other.tiedEmbeddings != model.tiedEmbeddings) return refuse("its table of tokens", tied(other), tied(model));
    return {};
}

// Where the data goes on that a step takes so many rows of.
std::string dataNote(const Checkpoint& from, const Plan& plan)
{
    const auto rows = [](const Plan& each) { return 1LL * each.model.microbatchRows * each.pipeline.microbatches * each.machine.replicas; };
    if (from.plan.data != plan.data) return "the run goes on with other data than the checkpoint was made with";
    if (plan.data.source == DataSource::Synthetic || rows(from.plan) == rows(plan)) return {};
    return fmt::format("a step takes {} of the data and took {} before the checkpoint: the run goes on at row {}, and not at {}",
                       traces::counted(rows(plan), "row"), rows(from.plan), from.step * rows(plan), from.step * rows(from.plan));
}

// What a run that goes on takes over from its checkpoint; `runnable` gets it.
Expected<void> resume(RunnablePlan& runnable)
{
    RunSpec& run = runnable.plan.run;
    if (run.resume.empty()) return {};
    Expected<Checkpoint> opened = openCheckpoint(run.resume);
    if (!opened.ok()) return Error{opened.error().in("run.resume").message + ". Go on from another checkpoint, or begin anew without run.resume"};
    const Checkpoint& from = opened.value();
    if (from.step >= run.steps)
        return Error{fmt::format("run.steps: {} altogether, and {} was made after {} of them; give more", run.steps, from.folder.string(), from.step)};
    if (const auto same = checkSameModel(from, runnable.plan.model); !same.ok()) return same.error();
    if (!runnable.schedule.inference() && from.plan.run.optimizer != run.optimizer)
        return Error{fmt::format("run.optimizer: {} keeps what {} needs, and the run takes {}; take the same", from.folder.string(),
                                 wordOf(kOptimizerWords, from.plan.run.optimizer), wordOf(kOptimizerWords, run.optimizer))};
    if (from.plan.run.precision != run.precision)
        return Error{fmt::format("run.precision: {} has weights of {}, and the run takes {}; take the same", from.folder.string(),
                                 wordOf(kPrecisionWords, from.plan.run.precision), wordOf(kPrecisionWords, run.precision))};
    if (from.plan.run.seed != run.seed)
        runnable.notes.push_back(fmt::format("the data goes on with seed {}, that of the checkpoint, and not with {}", from.plan.run.seed, run.seed));
    run.seed = from.plan.run.seed;
    if (std::string note = dataNote(from, runnable.plan); !note.empty()) runnable.notes.push_back(std::move(note));
    runnable.resume = std::make_shared<const Checkpoint>(std::move(opened).value());
    return {};
}

// Reads the plan's files.
Expected<std::shared_ptr<const Dataset>> dataOf(const Plan& plan)
{
    if (plan.data.source == DataSource::Synthetic) return std::shared_ptr<const Dataset>();
    Expected<Dataset> data = openDataset(plan.data);
    if (!data.ok()) return data.error();
    if (const auto fits = checkFit(plan.data, data.value(), plan.model); !fits.ok()) return fits.error();
    return std::shared_ptr<const Dataset>(std::make_shared<const Dataset>(std::move(data).value()));
}

// A hand-off that one thread makes to itself, or that processes make, has no queue of threads.
std::string handoffLeftOut(const RunSpec& run)
{
    if (run.mode == RunMode::Threads || run.handoff == HandoffKind::Boxes) return {};
    return fmt::format("run.handoff {} is of mode threads; mode {} has its own way, and nobody waits there to send", wordOf(kHandoffWords, run.handoff),
                       runModeText(run.mode));
}

std::string transportLeftOut(const RunnablePlan& runnable)
{
    const RunSpec& run = runnable.plan.run;
    if (run.transport == Transport::Auto || (run.mode == RunMode::Processes && run.device == DeviceKind::Cuda)) return {};
    if (run.transport == Transport::Nccl && sumsByTransport(runnable)) return {};
    return fmt::format("run.transport {} has no effect: it says how tensors go, and replicas sum, between GPUs, in mode processes on the device cuda, and for "
                       "replicas in mode threads there; leave it auto",
                       wordOf(kTransportWords, run.transport));
}

std::string precisionLeftOut(const RunSpec& run)
{
    if (!run.tf32 || run.device == DeviceKind::Cuda) return {};
    return "run.tf32 has no effect: GPUs multiply in it, and the run is on the CPU, which multiplies in full float32";
}

std::string shardingLeftOut(const Plan& plan)
{
    if (plan.pipeline.sharding == Sharding::None || plan.machine.replicas > 1) return {};
    return fmt::format("pipeline.sharding {} has no effect: it divides what replicas hold alike, and machine.replicas is 1", wordOf(kShardingWords, plan.pipeline.sharding));
}

Expected<void> checkProcesses(const Plan& plan, const ProcessGroup* group)
{
    if (plan.run.activations == ActivationAccount::SavedTensors)
        return Error{"run.activations: \"saved-tensors\" is counted over all ranks of one process; take \"allocator\", or mode threads or emulated"};
    const int all = plan.machine.replicas * plan.pipeline.ranks;
    const std::string ranks = traces::counted(plan.pipeline.ranks, "rank") + (plan.machine.replicas > 1 ? fmt::format(" in each of {} replicas", plan.machine.replicas) : "");
    const std::string mpirun = fmt::format("mpirun -np {} stagecraft-cli run PLAN --mode processes", all);
    const std::string torchrun = fmt::format("torchrun --no-python --nproc-per-node {} stagecraft-cli run PLAN --mode processes", all);
    if (group == nullptr)
        return Error{fmt::format("mode processes needs a process for each of the {}, which mpirun or torchrun starts: {}, or {}", ranks, mpirun, torchrun)};
    if (group->size() == all) return {};
    if (group->launcher() == Launcher::Torchrun)
        return Error{fmt::format("the plan has {}, and WORLD_SIZE is {}: {}", ranks, group->size(), torchrun)};
    return Error{fmt::format("the plan has {}, and mpirun has started {} process{}: {}", ranks, group->size(), group->size() == 1 ? "" : "es", mpirun)};
}

} // namespace

bool RunnablePlan::hasCollectives() const { return plan.machine.replicas > 1 && (!schedule.inference() || gathersWeights(schedule)); }

Expected<RunnablePlan> makeRunnable(const Plan& plan, const HostMemory& hostsMemory, const ProcessGroup* group, const DeviceSource* devices)
{
    if (const auto checked = checkPlan(plan); !checked.ok()) return checked.error();
    if (plan.model.empty())
        return Error{"the plan has no model, so there is nothing to run: choose one, or simulate the plan"};
    if (plan.run.steps < 1) return Error{fmt::format("run.steps: {} is not allowed; at least 1", plan.run.steps)};
    const long long ranks = 1LL * plan.machine.replicas * plan.pipeline.ranks;
    if (plan.run.mode == RunMode::Threads && ranks > kMostThreads)
        return Error{fmt::format("mode threads runs at most {} ranks, the plan has {}: take mode emulated", kMostThreads, ranks)};
    if (plan.run.mode == RunMode::Processes)
        if (const auto processes = checkProcesses(plan, group); !processes.ok()) return processes.error();
    // of several hosts, or of GPUs, this one does not hold it all
    const bool elsewhere = plan.run.device == DeviceKind::Cuda || (group != nullptr && !group->onOneHost());
    const HostMemory memory = elsewhere ? HostMemory{} : hostsMemory;
    const Expected<CostTable> costs = costsOf(plan);
    if (!costs.ok()) return costs.error();
    // what surely is too much is said before its schedule is made, which may have millions of actions
    if (const auto lasting = judgeMemory(memoryNeed(plan, {}, costs.value()), memory); !lasting.ok()) return lasting.error();
    const Expected<std::shared_ptr<const Dataset>> data = dataOf(plan);
    if (!data.ok()) return data.error();
    const Expected<Schedule> schedule = scheduleOf(plan);
    if (!schedule.ok()) return schedule.error();
    if (const auto actions = checkActions(plan, schedule.value()); !actions.ok()) return actions.error();
    const ValidationReport report = validate(schedule.value());
    if (!report.errors.empty()) return Error{"the schedule is not legal: " + report.errors.front().message};
    if (!report.deadlock.empty()) return deadlockError(report.deadlock);
    if (plan.run.mode == RunMode::Processes && hasOffload(schedule.value()) && schedule.value().offloadTo == OffloadTo::Partner)
        return Error{fmt::format("schedule {}: it keeps activations in a partner's memory, which mode processes does not reach; take mode threads or "
                                 "emulated, or offload to the host",
                                 schedule.value().name)};
    if (const auto slices = checkSlices(plan, schedule.value()); !slices.ok()) return slices.error();
    if (const auto clipping = checkClipping(plan.run, schedule.value()); !clipping.ok()) return clipping.error();
    if (const auto checkpoints = checkCheckpoints(plan.run, schedule.value()); !checkpoints.ok()) return checkpoints.error();
    if (plan.machine.replicas > 1 && schedule.value().asynchronous())
        return Error{fmt::format("machine.replicas: schedule {} updates its weights while micro-batches are in flight, and live replicas sum their "
                                 "gradients once a step: take 1 replica, a schedule with an update at the end of a step, or simulate this one",
                                 schedule.value().name)};
    if (plan.run.mode == RunMode::Processes && plan.machine.replicas > 1 && gathersWeights(schedule.value()))
        return Error{fmt::format("schedule {}: its UNSHARD gathers weights that replicas divide, and those in processes of their own divide nothing: take a "
                                 "schedule without it and sharding none, or mode threads or emulated",
                                 schedule.value().name)};
    if (plan.run.mode == RunMode::Processes && plan.machine.replicas > 1 && plan.pipeline.sharding != Sharding::None)
        return Error{"pipeline.sharding: replicas in processes of their own sum whole gradients and divide nothing: take sharding none, or mode threads or emulated"};
    Expected<std::vector<int>> gpus(std::vector<int>(static_cast<std::size_t>(ranks), kOnCpu));
    if (plan.run.device == DeviceKind::Cuda) gpus = gpuPlaces(plan, devicesOr(devices), group);
    if (!gpus.ok()) return gpus.error();
    const Expected<Partition> partition = partitionOf(plan);
    if (!partition.ok()) return partition.error();
    RunnablePlan runnable{plan, withoutCommunication(schedule.value()), partition.value(), costs.value(), data.value(), {}};
    runnable.gpus = std::move(gpus).value();
    if (plan.run.mode == RunMode::Processes) {
        runnable.places.resize(static_cast<std::size_t>(group->size()));
        RankPlace& own = runnable.places[static_cast<std::size_t>(group->rank())];
        own = plan.run.device == DeviceKind::Cuda ? placeOfRank(runnable.gpus, *group, devicesOr(devices)) : RankPlace{.host = group->member(group->rank()).host, .gpu = ""};
    }
    if (plan.machine.replicas > 1 && gathersWeights(runnable.schedule)) // a list that divides weights divides all, whoever wrote it
        runnable.plan.pipeline.sharding = runnable.costs.sharding = Sharding::Zero3;
    runnable.notes = {judgeMemory(memoryNeed(runnable.plan, runnable.schedule, runnable.costs), memory).value(), leftOutOf(plan.machine), handoffLeftOut(plan.run),
                      transportLeftOut(runnable), precisionLeftOut(plan.run), shardingLeftOut(plan)};
    std::erase(runnable.notes, "");
    if (const auto resumed = resume(runnable); !resumed.ok()) return resumed.error();
    if (!plan.run.checkpoint.empty() && (group == nullptr || group->rank() == 0)) // who writes them
        if (const auto folder = checkCheckpointFolder(plan.run.checkpoint, runnable.firstStep()); !folder.ok()) return folder.error();
    return runnable;
}

} // namespace stagecraft::runtime
