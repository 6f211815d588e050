// SPDX-License-Identifier: Apache-2.0
//
// Sums of replicas by NCCL's all-reduce, where each rank of each replica has a GPU of its own, in one process. Ranks that hold copies of
// the same stage are a clique: with 2 replicas of 4 ranks {0, 4}, {1, 5}, {2, 6} and {3, 7}; in two directions, where rank 3 holds the
// other copy of what rank 0 does, {0, 3, 4, 7} and {1, 2, 5, 6}. A bucket's tensors are summed in place, in groups (kMostParts).
//
// Why nothing waits for ever: a rank issues by one thread, that of its sums, on one stream; and all members come to a collective in one
// order, that in which the last one gave (replica_threads.h), which is the same for all cliques. NCCL's sums have no fixed order of
// addition, so they are those of the CPU but for rounding. Private to the runtime.
//
//   const std::unique_ptr<DeviceCollectives> collectives = ncclCollectives(replicas, source);   // connects; throws what went wrong
#pragma once

#include "engine/runtime/device_collectives_torch.h"
#include "engine/transport/nccl/nccl_source.h"

#include <memory>
#include <vector>

namespace stagecraft::runtime {

std::unique_ptr<DeviceCollectives> ncclCollectives(const std::vector<Execution>& replicas, const NcclSource& source);

} // namespace stagecraft::runtime
