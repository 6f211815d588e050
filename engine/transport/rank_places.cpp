// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/rank_places.h"

#include <algorithm>

namespace stagecraft::runtime {

namespace {

// Of the rank's place the first among those up to it.
std::size_t firstOf(std::span<const RankPlace> ranks, std::size_t rank)
{
    return static_cast<std::size_t>(std::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(rank), ranks[rank]) - ranks.begin());
}

} // namespace

traces::Expected<void> checkOneRankPerGpu(std::span<const RankPlace> ranks)
{
    for (std::size_t second = 0; second < ranks.size(); ++second) {
        const RankPlace& place = ranks[second];
        if (!place.onGpu()) return traces::Error{"rank " + std::to_string(second) + " is on the CPU, and NCCL takes ranks on GPUs alone"};
        const std::size_t first = firstOf(ranks, second);
        if (first == second) continue;
        return traces::Error{"ranks " + std::to_string(first) + " and " + std::to_string(second) + " are both on GPU " + place.gpu + " of " + place.host +
                             ", and NCCL takes one rank per GPU"};
    }
    return {};
}

bool firstOfItsGpu(std::span<const RankPlace> ranks, int rank)
{
    const auto place = static_cast<std::size_t>(rank);
    return !ranks[place].onGpu() || firstOf(ranks, place) == place;
}

} // namespace stagecraft::runtime
