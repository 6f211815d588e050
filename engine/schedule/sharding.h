// SPDX-License-Identifier: Apache-2.0
//
// What replicas of a pipeline divide among themselves (Rajbhandari et al., ZeRO, arXiv 1910.02054; FSDP is Zero3), in one header
// for the schedule, which gets actions for it (shard.h), and for the machine that executes them.
//
//   const std::optional<Sharding> sharding = shardingOf("zero3");
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft::engine {

enum class Sharding : std::uint8_t {
    None,
    Zero1, // optimizer state
    Zero2, // and gradients
    Zero3, // and weights: gathered before they are used
};

inline constexpr std::array<Sharding, 4> kShardings{Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3};

// The words of plans and of the command line.
constexpr std::string_view shardingName(Sharding sharding)
{
    switch (sharding) {
    case Sharding::None: return "none";
    case Sharding::Zero1: return "zero1";
    case Sharding::Zero2: return "zero2";
    case Sharding::Zero3: return "zero3";
    }
    return {};
}

constexpr std::optional<Sharding> shardingOf(std::string_view name)
{
    for (const Sharding sharding : kShardings)
        if (shardingName(sharding) == name) return sharding;
    return std::nullopt;
}

} // namespace stagecraft::engine
