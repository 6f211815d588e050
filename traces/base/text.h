// SPDX-License-Identifier: Apache-2.0
//
// Small work on text that many need.
//
//   trimmed(" 0F0 ") == "0F0"
//   lowered("Run.JSON") == "run.json"
//   harmless("\x1b[2J") == "\\x1b[2J"
//   counted(1, "micro-batch") == "1 micro-batch", counted(3, "micro-batch") == "3 micro-batches"
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft::traces {

inline constexpr std::string_view kLineBlanks = " \t"; // those within a line

// Text without the blanks around it.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n")
{
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// With the letters of ASCII in lower case, whatever the locale: for endings of file names.
inline std::string lowered(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

// For a terminal: a message may quote a file, and what a terminal would obey is shown instead.
inline std::string harmless(std::string_view message)
{
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string shown;
    for (const char c : message) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte >= 0x20 || c == '\n' || c == '\t') && byte != 0x7f) shown += c;
        else shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return shown;
}

// A number of things; `thing` is a singular whose plural takes -s, after "ch" -es ("batch"), or -ies for "ry" ("entry").
template <std::integral Number>
std::string counted(Number number, std::string_view thing)
{
    std::string text = std::to_string(number) + " " + std::string(thing);
    if (number == 1) return text;
    if (thing.ends_with("ry")) {
        text.pop_back();
        return text + "ies";
    }
    return text + (thing.ends_with("ch") ? "es" : "s");
}

} // namespace stagecraft::traces
