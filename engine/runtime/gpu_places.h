// SPDX-License-Identifier: Apache-2.0
//
// On which GPU each rank of a run computes, and what keeps a plan from running there.
//
//   const Expected<std::vector<int>> gpus = gpuPlaces(plan, schedule, cudaDevices());   // by rank; kOnCpu: on the CPU
#pragma once

#include "engine/plan/plan.h"
#include "engine/runtime/device_source.h"
#include "engine/schedule/schedule.h"

#include <vector>

namespace stagecraft::runtime {

// Of a plan for the device cuda: as it says, or spread evenly: ranks that follow each other share a GPU where there are fewer than ranks. Mode emulated takes the
// first alone, where each action is alone as well. Errors name what is missing and what to do.
engine::Expected<std::vector<int>> gpuPlaces(const engine::Plan& plan, const engine::Schedule& schedule, const DeviceSource& devices);

} // namespace stagecraft::runtime
