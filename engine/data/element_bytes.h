// SPDX-License-Identifier: Apache-2.0
//
// Values out of the bytes of a file, whose length was checked before. Private to the engine's readers of arrays.
#pragma once

#include "engine/data/array.h"
#include "traces/base/expected.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace stagecraft::engine {

enum class ByteOrder : std::uint8_t { Little, Big };

// Of an unsigned whole number with as many bytes as its type.
template <class Unsigned>
Unsigned wholeAt(std::string_view bytes, std::size_t at, ByteOrder order)
{
    Unsigned value = 0;
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
        const std::size_t place = order == ByteOrder::Big ? i : sizeof(Unsigned) - 1 - i;
        value = static_cast<Unsigned>(static_cast<Unsigned>(value << 7 << 1) | static_cast<unsigned char>(bytes[at + place]));
    }
    return value;
}

// All elements of a type, as To.
template <class From, class To>
std::vector<To> elements(std::string_view bytes, std::size_t count, ByteOrder order)
{
    using Bits = std::conditional_t<sizeof(From) == 1, std::uint8_t,
                                    std::conditional_t<sizeof(From) == 2, std::uint16_t, std::conditional_t<sizeof(From) == 4, std::uint32_t, std::uint64_t>>>;
    std::vector<To> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<To>(std::bit_cast<From>(wholeAt<Bits>(bytes, i * sizeof(From), order)));
    return values;
}

// The product of a shape; nothing where it is more than `most`, or an extent is negative.
inline std::optional<std::size_t> countOf(std::span<const std::int64_t> shape, std::size_t most)
{
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; })) return std::nullopt;
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    std::size_t count = 1;
    for (const std::int64_t extent : shape) {
        if (count > most / static_cast<std::size_t>(extent)) return std::nullopt;
        count *= static_cast<std::size_t>(extent);
    }
    return count;
}

} // namespace stagecraft::engine
