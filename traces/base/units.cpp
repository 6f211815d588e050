// SPDX-License-Identifier: Apache-2.0
#include "traces/base/units.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace stagecraft::traces {
namespace {

struct Unit {
    std::string_view text;
    double factor;
};

constexpr std::array<Unit, 5> kTimeUnits{{{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 4> kSizeUnits{{{"B", 1}, {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}}};
constexpr std::array<Unit, 7> kRateUnits{{{"B/s", 1},
                                          {"KB/s", 1e3},
                                          {"MB/s", 1e6},
                                          {"GB/s", 1e9},
                                          {"KiB/s", 1024.},
                                          {"MiB/s", 1048576.},
                                          {"GiB/s", 1073741824.}}};

struct Quantity {
    double number = 0;
    std::string_view unit;
};

Expected<Quantity> split(std::string_view text, std::string_view what, std::string_view example)
{
    const std::string_view body = trimmed(text, kLineBlanks);
    Quantity q;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), q.number);
    if (error != std::errc{} || !std::isfinite(q.number))
        return Error{fmt::format("\"{}\" is no {}; write a number with its unit, such as {}", text, what, example)};
    if (q.number < 0) return Error{fmt::format("\"{}\" is negative; a {} is 0 or more", text, what)};
    q.unit = trimmed(body.substr(static_cast<std::size_t>(end - body.data())), kLineBlanks);
    return q;
}

// The product as int64; 9e18 is the last power that llround can take.
Expected<std::int64_t> scaled(double number, double factor, std::string_view text, std::string_view most)
{
    const double product = number * factor;
    if (product > 9e18) return Error{fmt::format("\"{}\" is too large; the most is {}", text, most)};
    return static_cast<std::int64_t>(std::llround(product));
}

const Unit* find(std::span<const Unit> units, std::string_view text)
{
    for (const Unit& unit : units)
        if (unit.text == text) return &unit;
    return nullptr;
}

std::string fourDigits(double number)
{
    std::string text = fmt::format("{:.4g}", number);
    // 1.235e+04 and beyond: whole numbers read better than an exponent
    if (text.find('e') != std::string::npos) text = fmt::format("{:.0f}", number);
    return text;
}

std::string withUnit(double amount, std::span<const Unit> units)
{
    const Unit* unit = &units.front();
    for (const Unit& candidate : units)
        if (amount >= candidate.factor) unit = &candidate;
    return fmt::format("{} {}", fourDigits(amount / unit->factor), unit->text);
}

} // namespace

Expected<TimeNs> parseDuration(std::string_view text)
{
    Expected<Quantity> q = split(text, "duration", "250ns, 3us, 1.5ms or 2s");
    if (!q.ok()) return q.error();
    if (q.value().unit.empty()) {
        if (q.value().number == 0) return TimeNs{0};
        return Error{fmt::format("\"{0}\" has no unit; write {1}ns, {1}us, {1}ms or {1}s", text, trimmed(text, kLineBlanks))};
    }
    const Unit* unit = find(kTimeUnits, q.value().unit);
    if (unit == nullptr)
        return Error{fmt::format("\"{}\": unit \"{}\" is unknown; allowed are ns, us, ms, s", text, q.value().unit)};
    return scaled(q.value().number, unit->factor, text, "9e9 s");
}

Expected<Bytes> parseSize(std::string_view text)
{
    Expected<Quantity> q = split(text, "size", "64B, 4KiB, 1.5MiB or 2GiB");
    if (!q.ok()) return q.error();
    const Unit* unit = q.value().unit.empty() ? &kSizeUnits.front() : find(kSizeUnits, q.value().unit);
    if (unit == nullptr)
        return Error{fmt::format("\"{}\": unit \"{}\" is unknown; allowed are B, KiB, MiB, GiB", text, q.value().unit)};
    return scaled(q.value().number, unit->factor, text, "8e9 GiB");
}

Expected<double> parseBandwidth(std::string_view text)
{
    Expected<Quantity> q = split(text, "bandwidth", "900MB/s or 25GB/s");
    if (!q.ok()) return q.error();
    const Unit* unit = find(kRateUnits, q.value().unit);
    if (unit == nullptr)
        return Error{fmt::format("\"{}\": unit \"{}\" is unknown; allowed are B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s",
                                 text, q.value().unit)};
    const double rate = q.value().number * unit->factor;
    if (!std::isfinite(rate)) return Error{fmt::format("\"{}\" is too large for a bandwidth; at most 1e308 B/s", text)};
    if (!(rate > 0)) return Error{fmt::format("\"{}\": a bandwidth must be above 0", text)};
    return rate;
}

Expected<double> parseFraction(std::string_view text)
{
    Expected<Quantity> q = split(text, "fraction", "5% or 0.05");
    if (!q.ok()) return q.error();
    if (q.value().unit.empty()) return q.value().number;
    if (q.value().unit == "%") return q.value().number / 100;
    return Error{fmt::format("\"{}\": \"{}\" after the number is not understood; write 5% or 0.05", text, q.value().unit)};
}

std::string formatDuration(TimeNs ns)
{
    constexpr std::array<Unit, 4> shown{{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
    // as a double: the least int64 has no positive counterpart
    return (ns < 0 ? "-" : "") + withUnit(std::abs(static_cast<double>(ns)), shown);
}

std::string formatSize(Bytes bytes)
{
    return (bytes < 0 ? "-" : "") + withUnit(std::abs(static_cast<double>(bytes)), kSizeUnits);
}

std::string formatBandwidth(double bytesPerSecond)
{
    return withUnit(bytesPerSecond, std::span(kRateUnits).first(4));
}

std::string formatPercent(double fraction)
{
    const double percent = fraction * 100;
    return fmt::format("{} %", std::abs(percent) < 0.005 ? "0" : fmt::format("{:.4g}", std::round(percent * 100) / 100));
}

std::string exactDuration(TimeNs ns)
{
    constexpr std::array<Unit, 3> whole{{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}}};
    for (const Unit& unit : whole) {
        const auto factor = static_cast<TimeNs>(unit.factor);
        if (ns != 0 && ns % factor == 0) return fmt::format("{}{}", ns / factor, unit.text);
    }
    return fmt::format("{}ns", ns);
}

std::string exactSize(Bytes bytes)
{
    for (std::size_t i = kSizeUnits.size(); i-- > 1;) {
        const auto factor = static_cast<Bytes>(kSizeUnits[i].factor);
        if (bytes != 0 && bytes % factor == 0) return fmt::format("{}{}", bytes / factor, kSizeUnits[i].text);
    }
    return fmt::format("{}B", bytes);
}

} // namespace stagecraft::traces
