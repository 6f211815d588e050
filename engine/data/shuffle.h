// SPDX-License-Identifier: Apache-2.0
//
// A permutation of 0..n-1 that is computed place by place: a Feistel network over the next even power of two, entered again while its
// result lies outside (cycle walking, Black and Rogaway 2002). So a step far into a run needs no list of what came before.
//
//   shuffled(3, 10, seed)  // where 3 goes; the others of the ten go elsewhere
#pragma once

#include "engine/simulate/split_mix.h"

#include <bit>

namespace stagecraft::engine {

// Precondition: place < count.
constexpr std::uint64_t shuffled(std::uint64_t place, std::uint64_t count, std::uint64_t seed)
{
    constexpr int kRounds = 4;
    const int half = (static_cast<int>(std::bit_width(count - 1)) + 1) / 2;
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    do {
        std::uint64_t left = place >> half;
        std::uint64_t right = place & mask;
        for (int round = 0; round < kRounds; ++round) {
            const std::uint64_t turned = left ^ (mixed(seed + static_cast<std::uint64_t>(round) * kSplitMixStep + right) & mask);
            left = right;
            right = turned;
        }
        place = left << half | right;
    } while (place >= count);
    return place;
}

} // namespace stagecraft::engine
