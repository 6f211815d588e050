// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stagecraft::engine {

// SplitMix64 (Steele, Lea, Flood 2014): seeds that lie kSplitMixStep apart give its sequence, a well-mixed 64-bit value each.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15ULL;

constexpr std::uint64_t mixed(std::uint64_t x)
{
    x += kSplitMixStep;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

} // namespace stagecraft::engine
