// SPDX-License-Identifier: Apache-2.0
//
// Two ways to execute one and the same action list. Both return when all steps are done or the run ends early; failures
// are in the control. With replicas there is an Execution for each, which share all but their stages. Private to the runtime.
#pragma once

#include "engine/probe/cupti/work_scope.h"
#include "engine/runtime/device_watch.h"
#include "engine/runtime/replica_sums.h"
#include "engine/runtime/step_keeper_torch.h"
#include "engine/runtime/trouble.h"

#include <vector>

namespace stagecraft::runtime {

struct NcclSource; // engine/transport/nccl/nccl_source.h

struct Execution {
    const engine::Plan& plan;
    const engine::Schedule& schedule;
    Pipeline& pipeline;
    RunRecorder& recorder;
    RunControl& control;
    StepKeeper& keeper;
    const Clock& clock;
    const Clock& cpuClock; // of the calling thread
    const engine::CostTable& costs; // emulated: what hand-offs, sums and copies take
    Trouble& trouble;
    int firstStep = 0; // others may have been done before, by a run that this one goes on from
    const WorkMarks* marks = nullptr; // where kernels are recorded
    const ReplicaSums* sums = nullptr; // among the replicas; none where there is one
    int replica = 0;
    DeviceWatch* watch = nullptr; // where ranks wait for GPUs
    const NcclSource* ncclSums = nullptr; // by which replicas sum on GPUs; none: by copies

    // A rank of this replica among those of all.
    [[nodiscard]] traces::Rank among(traces::Rank rank) const { return traces::Rank{replica * schedule.ranks + rank.value}; }
    // On purpose: paused, or a stage is held.
    [[nodiscard]] bool standsStill() const
    {
        if (control.pausing()) return true;
        for (int s = 0; s < schedule.stages(); ++s)
            if (trouble.holds(traces::Stage{s})) return true;
        return false;
    }
};

// A thread per rank; the caller's thread settles pauses meanwhile.
void runOnThreads(const std::vector<Execution>& replicas);

// On the caller's thread alone: every action by itself, in the order of virtual time.
void runEmulated(const std::vector<Execution>& replicas);

} // namespace stagecraft::runtime
