// SPDX-License-Identifier: Apache-2.0
#include "engine/data/idx.h"

#include "engine/data/element_bytes.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::engine {

using traces::counted;
using traces::Error;
using traces::Expected;

namespace {

std::size_t sizeOfType(unsigned type)
{
    switch (type) {
    case 0x08:
    case 0x09: return 1;
    case 0x0B: return 2;
    case 0x0C:
    case 0x0D: return 4;
    case 0x0E: return 8;
    default: return 0;
    }
}

} // namespace

Expected<Array> readIdx(std::string_view bytes)
{
    constexpr std::size_t kMostExtents = 8; // images in colour have four
    if (bytes.starts_with("\x1f\x8b")) return Error{"byte 0: it is compressed by gzip; unpack it first (gunzip)"};
    if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
        return Error{"byte 0: an IDX file begins with two zero bytes, its type and its number of extents; this is no such file"};
    const auto type = static_cast<unsigned char>(bytes[2]);
    const auto extents = static_cast<unsigned char>(bytes[3]);
    const std::size_t size = sizeOfType(type);
    if (size == 0)
        return Error{fmt::format("byte 2: type 0x{:02X} is not known; 0x08 (bytes), 0x09, 0x0B, 0x0C, 0x0D (float) and 0x0E are", type)};
    if (extents < 1 || extents > kMostExtents) return Error{fmt::format("byte 3: {} extents are not allowed; 1 to {}", extents, kMostExtents)};
    const std::size_t begin = 4 + std::size_t{4} * extents;
    if (bytes.size() < begin)
        return Error{fmt::format("byte {}: the file ends within its header, which has {}; fetch it again", bytes.size(), counted(begin, "byte"))};
    Array array;
    for (std::size_t i = 4; i < begin; i += 4) array.shape.push_back(wholeAt<std::uint32_t>(bytes, i, ByteOrder::Big));
    const std::size_t room = (bytes.size() - begin) / size;
    const std::optional<std::size_t> count = countOf(array.shape, room);
    if (!count)
        return Error{fmt::format("byte {}: the header tells of {} values of {}, and the file ends before they do; fetch it again", bytes.size(),
                                 fmt::join(array.shape, " x "), counted(size, "byte"))};
    if (*count * size != bytes.size() - begin)
        return Error{fmt::format("byte {}: more follows than the {} values that the header tells of; this is no file of one array",
                                 begin + *count * size, fmt::join(array.shape, " x "))};
    const std::string_view values = bytes.substr(begin);
    constexpr ByteOrder kOrder = ByteOrder::Big;
    switch (type) {
    case 0x08: array.values = elements<std::uint8_t, std::uint8_t>(values, *count, kOrder); break;
    case 0x09: array.values = elements<std::int8_t, std::int64_t>(values, *count, kOrder); break;
    case 0x0B: array.values = elements<std::int16_t, std::int64_t>(values, *count, kOrder); break;
    case 0x0C: array.values = elements<std::int32_t, std::int64_t>(values, *count, kOrder); break;
    case 0x0D: array.values = elements<float, float>(values, *count, kOrder); break;
    default: array.values = elements<double, float>(values, *count, kOrder); break;
    }
    return array;
}

} // namespace stagecraft::engine
