// SPDX-License-Identifier: Apache-2.0
//
// The words that writer and reader of Chrome JSON share.
#pragma once

#include "traces/store/trace.h"

#include <array>
#include <optional>
#include <string_view>

namespace stagecraft::traces {

constexpr std::string_view laneKindText(LaneKind kind)
{
    switch (kind) {
    case LaneKind::Compute: return "compute";
    case LaneKind::Transfer: return "transfer";
    case LaneKind::Stream: return "stream";
    case LaneKind::Copy: return "copy";
    case LaneKind::Collective: return "collective";
    }
    return "";
}

constexpr std::string_view edgeKindText(EdgeKind kind)
{
    switch (kind) {
    case EdgeKind::Data: return "data";
    case EdgeKind::Memory: return "memory";
    case EdgeKind::Flush: return "flush";
    }
    return "";
}

// The parts of a GPU's memory, from the ground up: who stacks them gets what is used. None is the name of a class of a rank's memory.
inline constexpr std::array<std::string_view, 3> kGpuMemoryWords{"active", "reserved, unused", "other than LibTorch"};

// The enumerator, up to `last`, that `text` stands for.
template <class Enum, class Text>
std::optional<Enum> enumeratorOf(std::string_view word, Enum last, Text text)
{
    for (int i = 0; i <= static_cast<int>(last); ++i)
        if (text(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
    return std::nullopt;
}

} // namespace stagecraft::traces
