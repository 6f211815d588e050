// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/rank_devices.h"

#include <algorithm>

namespace stagecraft::runtime {

traces::Expected<void> checkOneRankPerGpu(std::span<const RankDevice> ranks)
{
    for (std::size_t second = 1; second < ranks.size(); ++second) {
        const auto until = ranks.begin() + static_cast<std::ptrdiff_t>(second);
        const auto first = std::find(ranks.begin(), until, ranks[second]);
        if (first == until) continue;
        return traces::Error{"ranks " + std::to_string(first - ranks.begin()) + " and " + std::to_string(second) + " are both on GPU " + first->gpu + " of " +
                             first->host +
                             ", and NCCL takes one rank per GPU. Give each a GPU of its own, or let the stages share the GPU in one process "
                             "(--mode threads), where they hand over to each other without NCCL"};
    }
    return {};
}

} // namespace stagecraft::runtime
