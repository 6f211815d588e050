// SPDX-License-Identifier: Apache-2.0
//
// Writes IDX and .npy files for tests, by the formats' own descriptions and not by the readers' code.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stagecraft::test {

inline void appendBig(std::string& to, std::uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xff);
}

// IDX of bytes without a sign.
inline std::string idxOfBytes(const std::vector<std::uint32_t>& shape, const std::vector<std::uint8_t>& values)
{
    std::string file{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (const std::uint32_t extent : shape) appendBig(file, extent);
    for (const std::uint8_t value : values) file += static_cast<char>(value);
    return file;
}

// .npy of a host whose smallest byte comes first; `header` is the dictionary.
inline std::string npyOf(const std::string& header, const void* values, std::size_t bytes, int version = 1)
{
    std::string padded = header;
    const std::size_t before = version == 1 ? 10 : 12;
    while ((before + padded.size() + 1) % 64 != 0) padded += ' ';
    padded += '\n';
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) file += static_cast<char>(padded.size() >> (8 * i) & 0xff);
    file += padded;
    file.append(static_cast<const char*>(values), bytes);
    return file;
}

template <class Number>
std::string npyOf(const std::string& type, const std::string& shape, const std::vector<Number>& values, int version = 1)
{
    return npyOf("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", values.data(), values.size() * sizeof(Number), version);
}

} // namespace stagecraft::test
