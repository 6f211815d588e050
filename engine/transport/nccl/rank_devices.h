// SPDX-License-Identifier: Apache-2.0
//
// NCCL takes one rank per GPU: with two it ends with "Duplicate GPU detected" (2.28 has nothing against it; NCCL_MULTI_RANK_GPU_ENABLE comes
// with 2.30). That is said before anything is started.
//
//   if (auto apart = checkOneRankPerGpu({{"node1", "GPU-5a..."}, {"node1", "GPU-07..."}}); !apart.ok()) return apart.error();
#pragma once

#include "traces/base/expected.h"

#include <span>
#include <string>

namespace stagecraft::runtime {

// Where a rank computes.
struct RankDevice {
    std::string host;
    std::string gpu; // its UUID, or its place on the bus: the same for all processes of the host, as the number of a device is not
    bool operator==(const RankDevice&) const = default;
};

// By rank.
traces::Expected<void> checkOneRankPerGpu(std::span<const RankDevice> ranks);

} // namespace stagecraft::runtime
