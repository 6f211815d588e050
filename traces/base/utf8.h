// SPDX-License-Identifier: Apache-2.0
//
// Is a text UTF-8 (RFC 3629)? Files of other encodings come in, and their bytes must not go out as they are.
//
//   utf8Length("\xc3\xa9t\xc3\xa9") == 2          // of the first character; 0 where none begins
//   firstBrokenByte("caf\xe9") == 3
//   withoutBrokenBytes("caf\xe9") == "caf\\xe9"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft::traces {

// Bytes of the character that begins here; 0 where it is none: a byte that begins none, too few behind it, a longer form than is needed, or
// half of a pair of UTF-16.
constexpr std::size_t utf8Length(std::string_view text)
{
    if (text.empty()) return 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) >= 0xa0) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) >= 0x90) return 0;
    return length;
}

// The place of the first byte, from 0, that is no part of a character; npos where the whole is UTF-8.
constexpr std::size_t firstBrokenByte(std::string_view text)
{
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8Length(text.substr(at));
        if (length == 0) return at;
        at += length;
    }
    return std::string_view::npos;
}

// For people: bytes that are no part of a character are shown by their numbers.
inline std::string withoutBrokenBytes(std::string_view text)
{
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string shown;
    for (std::size_t broken = 0; (broken = firstBrokenByte(text)) != std::string_view::npos; text.remove_prefix(broken + 1)) {
        const auto byte = static_cast<unsigned char>(text[broken]);
        shown += text.substr(0, broken);
        shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return shown += text;
}

} // namespace stagecraft::traces
