// SPDX-License-Identifier: Apache-2.0
//
// Can a plan run on this engine? Everything that can be said before a thread is started or a byte allocated.
#pragma once

#include "engine/checkpoint/checkpoint.h"
#include "engine/data/dataset.h"
#include "engine/plan/plan.h"
#include "engine/probe/host_memory.h"
#include "engine/schedule/transfer_order.h"
#include "engine/transport/nccl/nccl_source.h"
#include "engine/transport/rank_places.h"

#include <memory>
#include <string>
#include <vector>

namespace stagecraft::runtime {

class DeviceSource;
class ProcessGroup;

// What a run takes to hand over by NCCL.
struct NcclWish {
    const NcclSource* source = nullptr; // not owned
    engine::TransferOrder order;        // of all ranks
    NcclId id;                          // by which those of a replica meet
    std::vector<NcclId> sumIds = {};    // of each clique that sums (replica_sums.h)
};

struct RunnablePlan {
    engine::Plan plan;
    engine::Schedule schedule;
    engine::Partition partition;
    engine::CostTable costs;
    std::shared_ptr<const engine::Dataset> data; // that the plan learns from; nothing: synthetic
    std::vector<std::string> notes; // what whoever starts it should know
    std::vector<std::string> information = {}; // which way it goes
    std::shared_ptr<const engine::Checkpoint> resume = {}; // that it goes on from
    std::vector<int> gpus = {};                            // of each rank; kOnCpu: none; of processes one's own alone
    std::vector<RankPlace> places = {};                    // of processes, by rank: where all are, as far as they have told each other
    std::shared_ptr<NcclWish> nccl = {};                   // of processes: how tensors go from GPU to GPU; null: by way of the host
    const NcclSource* ncclSums = nullptr; // not owned; by which replicas sum on GPUs, in one process; null: by copies

    // Whether replicas sum or gather anything.
    [[nodiscard]] bool hasCollectives() const;
    [[nodiscard]] int firstStep() const { return resume ? resume->step : 0; }
};

// Errors say what is missing and what to do.
// `group`: the processes, in mode processes; null without any. `devices`: the GPUs; null: cudaDevices(), which are asked for where the plan
// wants them.
engine::Expected<RunnablePlan> makeRunnable(const engine::Plan& plan, const HostMemory& memory, const ProcessGroup* group = nullptr,
                                            const DeviceSource* devices = nullptr);

} // namespace stagecraft::runtime
