// SPDX-License-Identifier: Apache-2.0
//
// What the engine does on the CPU alone so far: known from the plan, whatever GPUs there are.
//
//   plan.run.device = DeviceKind::Cuda;
//   plan.pipeline.offload = 0.5;
//   checkGpuRun(plan)   // "run.device: schedule 1f1b offloads activations, and the engine does that on the CPU alone; ..."
#pragma once

#include "engine/plan/plan.h"
#include "traces/base/expected.h"

namespace stagecraft::engine {

// Of a plan for the device cuda; one for the cpu is none of this. `schedule` is the plan's.
Expected<void> checkGpuRun(const Plan& plan, const Schedule& schedule);
// Makes the schedule itself, and only where it may move activations. A schedule that cannot be made is nothing that GPUs refuse.
Expected<void> checkGpuRun(const Plan& plan);

} // namespace stagecraft::engine
