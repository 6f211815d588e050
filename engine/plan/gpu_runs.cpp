// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_runs.h"

#include "engine/schedule/offload.h"
#include "engine/schedule/shard.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <string_view>

namespace stagecraft::engine {

namespace {

Error refusal(std::string_view what, std::string_view instead)
{
    return Error{fmt::format("run.device: {}, and the engine does that on the CPU alone; take the device cpu, or {}", what, instead)};
}

// All but what the order of actions decides.
Expected<void> checkWithoutSchedule(const Plan& plan)
{
    if (plan.machine.replicas > 1 && plan.pipeline.sharding != Sharding::None)
        return refusal(fmt::format("{} replicas divide what they hold ({})", plan.machine.replicas, shardingName(plan.pipeline.sharding)),
                       "1 replica or no sharding");
    return {};
}

bool mayMoveActivations(const PipelineSpec& pipeline)
{
    const ScheduleFamily* family = findFamily(pipeline.schedule);
    const bool byItself = family ? !family->takesOffload : pipeline.customSchedule.find("OFFLOAD") != std::string::npos;
    return byItself || pipeline.offload > 0;
}

} // namespace

Expected<void> checkGpuRun(const Plan& plan, const Schedule& schedule)
{
    if (plan.run.device != DeviceKind::Cuda) return {};
    if (Expected<void> able = checkWithoutSchedule(plan); !able.ok()) return able;
    if (plan.machine.replicas > 1 && gathersWeights(schedule))
        return refusal(fmt::format("schedule {} divides the weights among replicas", schedule.name), "1 replica or a schedule without UNSHARD");
    if (hasOffload(schedule)) return refusal(fmt::format("schedule {} offloads activations", schedule.name), "a schedule without OFFLOAD");
    return {};
}

Expected<void> checkGpuRun(const Plan& plan)
{
    if (plan.run.device != DeviceKind::Cuda) return {};
    if (Expected<void> able = checkWithoutSchedule(plan); !able.ok() || !mayMoveActivations(plan.pipeline)) return able;
    const Expected<Schedule> schedule = scheduleOf(plan);
    return schedule.ok() ? checkGpuRun(plan, schedule.value()) : Expected<void>{};
}

} // namespace stagecraft::engine
