// SPDX-License-Identifier: Apache-2.0
//
// Jitter of an action's time: a factor 1 + sigma*z with z normal, cut at 3 sigma and never below 0. It depends only on the
// seed and the action, not on the order of the simulation, so that two schedules meet the same slow actions.
#pragma once

#include "engine/simulate/split_mix.h"
#include "traces/base/action.h"
#include "traces/base/units.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace stagecraft::engine {

inline double jitterFactor(double sigma, std::uint64_t seed, const traces::Work& work)
{
    const std::uint64_t key = mixed(seed) ^ mixed((static_cast<std::uint64_t>(work.flow) << 56) ^ (static_cast<std::uint64_t>(work.kind) << 48) ^
                                                  (static_cast<std::uint64_t>(work.stage.value) << 32) ^
                                                  static_cast<std::uint32_t>(work.microbatch.value));
    const auto unit = [](std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; };
    const double u = unit(mixed(key));
    const double w = unit(mixed(key + 1));
    const double z = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * w); // Box-Muller
    return std::max(0.0, 1 + sigma * std::clamp(z, -3.0, 3.0));
}

} // namespace stagecraft::engine
