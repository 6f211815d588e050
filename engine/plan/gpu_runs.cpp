// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_runs.h"

#include "engine/schedule/offload.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <string_view>

namespace stagecraft::engine {

namespace {

Error refusal(std::string_view what, std::string_view instead)
{
    return Error{fmt::format("run.device: {}, and the engine does that on the CPU alone; take the device cpu, or {}", what, instead)};
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
    if (plan.run.device == DeviceKind::Cpu || !hasOffload(schedule)) return {};
    return refusal(fmt::format("schedule {} offloads activations", schedule.name), "a schedule without OFFLOAD");
}

Expected<void> checkGpuRun(const Plan& plan)
{
    if (plan.run.device == DeviceKind::Cpu || !mayMoveActivations(plan.pipeline)) return {};
    const Expected<Schedule> schedule = scheduleOf(plan);
    return schedule.ok() ? checkGpuRun(plan, schedule.value()) : Expected<void>{};
}

} // namespace stagecraft::engine
