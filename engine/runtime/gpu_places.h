// SPDX-License-Identifier: Apache-2.0
//
// On which GPU each rank of a run computes.
//
//   const Expected<std::vector<int>> gpus = gpuPlaces(plan, cudaDevices());   // by rank, replica 0 first; kOnCpu: on the CPU
//   const RankPlace place = placeOfRank(gpus.value(), group, cudaDevices());   // of this process, for the others
#pragma once

#include "engine/plan/plan.h"
#include "engine/runtime/device_source.h"
#include "engine/transport/process_group.h"
#include "engine/transport/rank_places.h"

#include <vector>

namespace stagecraft::runtime {

// Of a plan for the device cuda: as it says, or spread evenly over the ranks of all replicas: those that follow each other share a GPU
// where there are fewer. Mode emulated takes the first alone, where each action is alone as well. Of processes, one's own rank alone has a place here: as the plan says, or in the order
// of the processes of its host, which begin anew where there are more than GPUs. Errors name what is missing and what to do.
engine::Expected<std::vector<int>> gpuPlaces(const engine::Plan& plan, const DeviceSource& devices, const ProcessGroup* group = nullptr);
// Of this process.
RankPlace placeOfRank(const std::vector<int>& gpus, const ProcessGroup& group, const DeviceSource& devices);

} // namespace stagecraft::runtime
