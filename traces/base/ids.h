// SPDX-License-Identifier: Apache-2.0
//
// Strong ids: swapping two of them does not compile.
//
//   Rank rank{2}; Stage stage{5};
//   rank = stage;            // error
//   order[index(rank)]       // as a container index
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stagecraft::traces {

template <class Tag, class Rep>
struct StrongId {
    Rep value{};

    constexpr StrongId() = default;
    template <class Int>
    constexpr explicit StrongId(Int v) : value(static_cast<Rep>(v))
    {
    }
    constexpr auto operator<=>(const StrongId&) const = default;
};

template <class Tag, class Rep>
constexpr std::size_t index(StrongId<Tag, Rep> id)
{
    return static_cast<std::size_t>(id.value);
}

using Stage = StrongId<struct StageTag, std::int16_t>;           // global, 0..S-1
using Rank = StrongId<struct RankTag, std::int32_t>;             // device, 0..p-1
using Chunk = StrongId<struct ChunkTag, std::int32_t>;           // stage of one rank, 0..v-1
using MicroBatch = StrongId<struct MicroBatchTag, std::int32_t>; // 0..m-1; -1 where an action has none
using Step = StrongId<struct StepTag, std::int32_t>;             // training step, 0..
using LaneId = StrongId<struct LaneTag, std::uint32_t>;          // row of a trace
using TextId = StrongId<struct TextTag, std::uint32_t>;          // interned text of a trace; 0 is the empty text

inline constexpr MicroBatch kNoMicroBatch{-1};

} // namespace stagecraft::traces

template <class Tag, class Rep>
struct std::hash<stagecraft::traces::StrongId<Tag, Rep>> {
    std::size_t operator()(stagecraft::traces::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
