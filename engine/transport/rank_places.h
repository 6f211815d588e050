// SPDX-License-Identifier: Apache-2.0
//
// Where the ranks of processes compute, as all tell all before a run. Those on one GPU share what it can do, and NCCL takes one rank per
// GPU: with two it ends with "Duplicate GPU detected" (2.28 has nothing against it; NCCL_MULTI_RANK_GPU_ENABLE comes with 2.30). That is
// said before anything is started.
//
//   const std::vector<RankPlace> places{{"node1", "0000:1b:00"}, {"node1", ""}};
//   if (auto apart = checkOneRankPerGpu(places); !apart.ok()) return apart.error();
#pragma once

#include "traces/base/expected.h"

#include <span>
#include <string>

namespace stagecraft::runtime {

struct RankPlace {
    std::string host;
    std::string gpu; // its place on the bus, which is the same for all processes of the host; empty: the rank is on the CPU

    [[nodiscard]] bool onGpu() const { return !gpu.empty(); }
    bool operator==(const RankPlace&) const = default;
};

// By rank: whether each has a GPU of its own.
traces::Expected<void> checkOneRankPerGpu(std::span<const RankPlace> ranks);

// Whether no rank before it is on the same GPU; of ranks on the CPU each is by itself.
bool firstOfItsGpu(std::span<const RankPlace> ranks, int rank);

} // namespace stagecraft::runtime
