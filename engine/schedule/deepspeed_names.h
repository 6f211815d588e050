// SPDX-License-Identifier: Apache-2.0
//
// The words of DeepSpeed's instructions, for reader and writer.
//
//   deepSpeedName(DeepSpeedKind::SendGrad) == "SendGrad"
#pragma once

#include "engine/schedule/deepspeed.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace stagecraft::engine {

inline constexpr std::array<std::string_view, 10> kDeepSpeedNames{
    "LoadMicroBatch", "ForwardPass", "BackwardPass",    "SendActivation", "RecvActivation",
    "SendGrad",       "RecvGrad",    "ReduceTiedGrads", "ReduceGrads",    "OptimizerStep"};

constexpr std::string_view deepSpeedName(DeepSpeedKind kind) { return kDeepSpeedNames[static_cast<std::size_t>(kind)]; }

constexpr std::optional<DeepSpeedKind> deepSpeedKindOf(std::string_view name)
{
    for (std::size_t i = 0; i < kDeepSpeedNames.size(); ++i)
        if (kDeepSpeedNames[i] == name) return static_cast<DeepSpeedKind>(i);
    return std::nullopt;
}

} // namespace stagecraft::engine
