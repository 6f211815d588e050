// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_messages.h"

#include "engine/plan/gpu_list.h"
#include "engine/plan/plan_json.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <unistd.h>

namespace stagecraft::runtime {

using namespace engine;
using namespace traces;

namespace {

std::string hostName()
{
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// "the gradient check failed in step 3: parameter 1 of stage 0 ...": what failed, and what of the parameter was compared.
FailureMessage parameterFailure(const GradientDifference& found, std::string_view what, std::string_view compared)
{
    FailureMessage failure;
    failure.text = fmt::format("the {} step {}: parameter {} of stage {} is off by {:.3g} where its largest {} is {:.3g}. This run is not to "
                               "be trusted: please report its plan.",
                               what, found.step.value, found.parameter, found.stage, found.difference, compared, found.scale);
    failure.stage = found.stage;
    failure.step = found.step.value;
    return failure;
}

} // namespace

TraceInfo openingInfo(const RunnablePlan& runnable)
{
    const Plan& plan = runnable.plan;
    const Schedule& schedule = runnable.schedule;
    const bool emulated = plan.run.mode == RunMode::Emulated;
    return {.label = emulated ? TraceLabel::Emulated : TraceLabel::Measured,
            .clock = emulated ? ClockKind::Virtual : ClockKind::Monotonic,
            .title = fmt::format("{}: {}, {}{}, {}", plan.name.empty() ? "run" : plan.name, schedule.name,
                                 plan.machine.replicas > 1 ? counted(plan.machine.replicas, "replica") + " of " : "",
                                 counted(schedule.ranks, "rank"), counted(schedule.microbatches, "micro-batch")),
            .schedule = schedule.name,
            .planJson = writePlan(plan),
            .ranks = plan.machine.replicas * schedule.ranks,
            .chunks = schedule.chunks,
            .microbatches = schedule.microbatches,
            .stageToRank = schedule.stageToRank,
            .host = hostName(),
            .slices = schedule.slices,
            .upStageToRank = schedule.upStageToRank,
            .memoryLimit = plan.machine.memory,
            .inference = schedule.inference()};
}

ProgressMessage progressAfter(int completedSteps, int allSteps)
{
    return {fmt::format("step {} of {}", completedSteps, allSteps), static_cast<double>(completedSteps) / allSteps};
}

ProgressMessage preparationProgress(const PreparationPiece& piece)
{
    return {fmt::format("{}: {} of {}", piece.doing, piece.done + 1, piece.all),
            static_cast<double>(piece.done) / std::max(piece.all, 1)};
}

std::string divergenceNote(Step step, double learningRate)
{
    return fmt::format("the training diverged in step {}: a gradient is no longer a finite number. Take a lower learning rate than {:g}",
                       step.value, learningRate);
}

std::string divergedWeight(std::string_view name, double learningRate)
{
    return fmt::format("the training has diverged: {} is no longer made of finite numbers. Take a lower learning rate than {:g}", name, learningRate);
}

std::string divergedLoss(double loss, bool updated, double learningRate)
{
    if (!updated)
        return fmt::format("the loss is {} before any update of the weights: look for values in the data that are none or far too large", loss);
    return fmt::format("the loss is {}: the training has diverged. Take a lower learning rate than {:g}, or clip the gradients (run.clip_norm)", loss,
                       learningRate);
}

std::string overflownGradient(std::string_view parameter, double lossScale)
{
    return fmt::format("the gradient of {} is no finite number: scaled by {:g} it is too large for 32 bits, or the training has diverged. Take a "
                       "smaller run.loss_scale or a lower learning rate",
                       parameter, lossScale);
}

std::string divergedNorm(int layer, double learningRate)
{
    return fmt::format("the norm of the gradients of layer {} is no finite number: the training has diverged. Take a lower learning rate than {:g}, "
                       "or a smaller run.loss_scale",
                       layer, learningRate);
}

std::string busyNote(double excess)
{
    return fmt::format("the machine was busy: the actions took {} longer than they computed, for other programs had the core "
                       "meanwhile. The times of this run, and costs taken from it, carry that; end other programs and run it again",
                       formatPercent(excess));
}

FailureMessage threadFailure(std::string_view whom, std::string_view reason)
{
    FailureMessage failure;
    failure.text = fmt::format("the thread of {} cannot be started: {}. This user, or the container, may have no more "
                               "threads: raise the limit (ulimit -u, pids.max), take fewer ranks, or mode emulated, which "
                               "runs all ranks in one thread.",
                               whom, reason);
    return failure;
}

FailureMessage deadlockFailure(const std::string& circle, const RunSpec& run)
{
    FailureMessage failure;
    failure.text = fmt::format("the run came to a deadlock: {}. {}", circle,
                               run.handoffDepth > 0 ? fmt::format("Take a larger handoff_depth than {}, or 0 for room for all, or let a rank take "
                                                                  "earlier what is sent to it.",
                                                                  run.handoffDepth)
                                                    : std::string("Change the order of the schedule's actions."));
    return failure;
}

FailureMessage actionFailure(const Work& work, Step step, Rank rank, std::string_view reason)
{
    FailureMessage failure;
    failure.text = fmt::format("{} failed in step {} on rank {}: {}", toText(Action{work, {}}), step.value, rank.value,
                               reason);
    failure.rank = rank.value;
    failure.stage = work.stage.value;
    if (work.microbatch != kNoMicroBatch) failure.microbatch = work.microbatch.value;
    failure.step = step.value;
    return failure;
}

FailureMessage silentGpuFailure(const DeviceWatch::Awaited& awaited, int gpu, TimeNs patience)
{
    constexpr TimeNs kSecond = 1'000'000'000;
    const std::string named = gpu == kOnCpu ? "A GPU" : "GPU " + std::to_string(gpu);
    if (!awaited.doing.empty()) {
        FailureMessage failure;
        failure.rank = awaited.rank.value;
        failure.text = fmt::format("{} has not answered rank {} for {} s, {}: it hangs, or it is lost. See nvidia-smi, and the system's log for \"Xid\".", named,
                                   awaited.rank.value, patience / kSecond, awaited.doing);
        return failure;
    }
    FailureMessage failure = actionFailure(awaited.work, awaited.step, awaited.rank, "");
    failure.text = fmt::format("{} has not answered rank {} for {} s{} in step {}: it hangs, or it is lost. What ran until then is kept. See "
                               "nvidia-smi, and the system's log for \"Xid\".",
                               named, awaited.rank.value, patience / kSecond,
                               awaited.work.kind == ActionKind::None ? std::string() : ", since it was asked for " + toText(Action{awaited.work, {}}),
                               awaited.step.value);
    if (awaited.work.kind == ActionKind::None) failure.stage.reset();
    return failure;
}

std::string spentNote(std::string_view why)
{
    return fmt::format("The GPUs are lost to this process ({}), so it ends; the next run takes a new one.", why);
}

FailureMessage checkpointFailure(Step step, const Error& error)
{
    FailureMessage failure;
    failure.text = fmt::format("the checkpoint after step {} was not written: {}. Earlier ones are whole; go on from the latest with run.resume.",
                               step.value, error.message);
    failure.step = step.value;
    return failure;
}

FailureMessage outputFailure(const OutputDifference& found)
{
    FailureMessage failure;
    failure.text = fmt::format("the check of the outputs failed in step {}: those of micro-batch {} are off by {:.3g} where the largest is "
                               "{:.3g}. This run is not to be trusted: please report its plan.",
                               found.step.value, found.microbatch, found.difference, found.scale);
    failure.microbatch = found.microbatch;
    failure.step = found.step.value;
    return failure;
}

FailureMessage weightFailure(const GradientDifference& found) { return parameterFailure(found, "check of the weights failed after", "value"); }

FailureMessage gradientFailure(const GradientDifference& found) { return parameterFailure(found, "gradient check failed in", "gradient"); }

} // namespace stagecraft::runtime
