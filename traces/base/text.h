// SPDX-License-Identifier: Apache-2.0
//
// Text without the blanks around it.
//
//   trimmed(" 0F0 ") == "0F0"
#pragma once

#include <cstddef>
#include <string_view>

namespace stagecraft::traces {

inline constexpr std::string_view kLineBlanks = " \t"; // those within a line

constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n")
{
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

} // namespace stagecraft::traces
