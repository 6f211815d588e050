// SPDX-License-Identifier: Apache-2.0
#include "traces/format/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace stagecraft::traces {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 if there is none (overlong forms and surrogates are none).
std::size_t sequenceLength(std::string_view text)
{
    const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto continues = [&](std::size_t i) { return (at(i) & 0xc0u) == 0x80u; };
    const unsigned first = at(0);
    if (first < 0x80u) return 1;
    if (first >= 0xc2u && first <= 0xdfu) return continues(1) ? 2 : 0;
    if (first >= 0xe0u && first <= 0xefu) {
        const bool allowed = !(first == 0xe0u && at(1) < 0xa0u) && !(first == 0xedu && at(1) > 0x9fu);
        return allowed && continues(1) && continues(2) ? 3 : 0;
    }
    if (first >= 0xf0u && first <= 0xf4u) {
        const bool allowed = !(first == 0xf0u && at(1) < 0x90u) && !(first == 0xf4u && at(1) > 0x8fu);
        return allowed && continues(1) && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

} // namespace

void appendJsonString(std::string& out, std::string_view text)
{
    out.push_back('"');
    while (!text.empty()) {
        const char c = text.front();
        std::size_t length = sequenceLength(text);
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else if (length == 0) {
            out += "\\ufffd";
            length = 1;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
    }
    out.push_back('"');
}

void appendMicroseconds(std::string& out, TimeNs ns)
{
    const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    fmt::format_to(std::back_inserter(out), "{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

Expected<TimeNs> parseMicroseconds(std::string_view token)
{
    const Error refused{"'" + std::string(token) + "' is no time in microseconds with at most three decimals"};
    const bool negative = token.starts_with('-');
    std::string digits(token.substr(negative ? 1 : 0));
    const std::size_t point = digits.find('.');
    std::string decimals = point == std::string::npos ? "" : digits.substr(point + 1);
    if (point != std::string::npos) digits.resize(point);
    if (digits.empty() || (point != std::string::npos && decimals.empty())) return refused;
    while (decimals.size() > 3 && decimals.back() == '0') decimals.pop_back();
    if (decimals.size() > 3) return refused;
    decimals.resize(3, '0');
    digits += decimals;
    if (negative) digits.insert(digits.begin(), '-');
    TimeNs ns = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ns);
    if (error != std::errc{} || end != digits.data() + digits.size()) return refused;
    return ns;
}

} // namespace stagecraft::traces
