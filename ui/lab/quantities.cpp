// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/quantities.h"

#include "engine/plan/plan_words.h"
#include "traces/base/parse_list.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace stagecraft::ui {
namespace {

using namespace traces;

// What a plan's file may say: beyond that it could not be read again, and no engine takes it.
constexpr double kMostNumber = 1e6; // a learning rate, a stage's factor
constexpr double kLeastFlopRate = 1;
constexpr double kMostFlopRate = 1e21;

struct Number {
    double value = 0;
    std::string_view rest;
};

std::optional<Number> leadingNumber(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    Number number;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number.value);
    if (fault != std::errc{} || !std::isfinite(number.value)) return std::nullopt;
    number.rest = trimmed(text.substr(static_cast<std::size_t>(end - text.data())), kLineBlanks);
    return number;
}

std::string withPrefix(double value, std::string_view unit)
{
    constexpr std::array<std::pair<double, std::string_view>, 5> kPrefixes{
        {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
    for (const auto& [scale, prefix] : kPrefixes)
        if (value >= scale) return fmt::format("{:.4g} {}{}", value / scale, prefix, unit);
    return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

} // namespace

std::string showDuration(TimeNs ns)
{
    std::string text = formatDuration(ns);
    const Expected<TimeNs> again = parseDuration(text);
    return again.ok() && again.value() == ns ? text : exactDuration(ns);
}

std::string showSize(Bytes bytes)
{
    std::string text = formatSize(bytes);
    const Expected<Bytes> again = parseSize(text);
    return again.ok() && again.value() == bytes ? text : exactSize(bytes);
}

Expected<MaybeDuration> parseMaybeDuration(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "auto") return MaybeDuration{};
    const Expected<TimeNs> duration = parseDuration(text);
    if (!duration.ok()) return duration.error();
    return MaybeDuration{duration.value()};
}

std::string showMaybeDuration(const MaybeDuration& ns) { return ns ? showDuration(*ns) : "auto"; }

Expected<Bytes> parseAutoSize(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "auto") return Bytes{0};
    return parseSize(text);
}

std::string showAutoSize(Bytes bytes) { return bytes == 0 ? "auto" : showSize(bytes); }

Expected<double> parseMaybeBandwidth(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "unlimited" || text == "0") return 0.0;
    return parseBandwidth(text);
}

std::string showMaybeBandwidth(double bytesPerSecond)
{
    return bytesPerSecond == 0 ? "unlimited" : formatBandwidth(bytesPerSecond);
}

Expected<double> parseFlopRate(std::string_view text)
{
    const std::string what = fmt::format("\"{}\" is no computing rate; write a number with GFLOP/s or TFLOP/s, such as 50 GFLOP/s; at most a million PFLOP/s",
                                         trimmed(text, kLineBlanks));
    const std::optional<Number> number = leadingNumber(text);
    if (!number || number->value <= 0) return Error{what};
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
        {{"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
    for (const auto& [unit, scale] : kUnits)
        if (number->rest == unit && number->value * scale >= kLeastFlopRate && number->value * scale <= kMostFlopRate)
            return number->value * scale;
    return Error{what};
}

std::string showFlopRate(double flopsPerSecond) { return withPrefix(flopsPerSecond, "FLOP/s"); }
std::string showFlops(double flops) { return withPrefix(flops, "FLOP"); }
std::string showCount(double count) { return withPrefix(count, ""); }
std::string showRate(double perSecond) { return withPrefix(perSecond, "/s"); }

Expected<double> parsePositive(std::string_view text)
{
    const std::optional<Number> number = leadingNumber(text);
    if (!number || !number->rest.empty() || number->value <= 0 || number->value > kMostNumber)
        return Error{fmt::format("\"{}\" is not allowed; write a number above 0, such as 0.001, and at most {:g}",
                                 trimmed(text, kLineBlanks), kMostNumber)};
    return number->value;
}

std::string showNumber(double value) { return fmt::format("{}", value); }

namespace {

// From `least` to `most`; `allowed` says so in words.
Expected<double> parseNumber(std::string_view text, double least, double most, std::string_view allowed)
{
    const std::optional<Number> number = leadingNumber(text);
    if (!number || !number->rest.empty() || !(number->value >= least && number->value <= most))
        return Error{fmt::format("\"{}\" is not allowed; {}", trimmed(text, kLineBlanks), allowed)};
    return number->value;
}

} // namespace

Expected<double> parseMomentum(std::string_view text) { return parseNumber(text, 0, 1, "write a number from 0 to 1, such as 0.9"); }

Expected<MaybeNumber> parseWeightDecay(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "auto") return MaybeNumber{};
    const Expected<double> decay = parseNumber(text, 0, kMostNumber, "write a number from 0 on, such as 0.01, or auto");
    if (!decay.ok()) return decay.error();
    return MaybeNumber{decay.value()};
}

std::string showMaybeNumber(const MaybeNumber& value) { return value ? showNumber(*value) : "auto"; }

Expected<double> parseClipNorm(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "none") return 0.0;
    return parseNumber(text, 0, 1e30, "write a number above 0, such as 1, or none");
}

std::string showClipNorm(double norm) { return norm == 0 ? "none" : showNumber(norm); }

Expected<double> parseLossScale(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    const bool power = text.starts_with("2^");
    const std::optional<Number> number = leadingNumber(power ? text.substr(2) : text);
    const double scale = !number ? 0 : power ? std::exp2(number->value) : number->value;
    if (!number || !number->rest.empty() || !engine::isLossScale(scale))
        return Error{fmt::format("\"{}\" is not allowed; write a power of two, such as 65536 or 2^16, from 1 to 2^60", text)};
    return scale;
}

std::string showLossScale(double scale)
{
    constexpr double kMostDigits = 1 << 20; // beyond it nobody sees that it is a power of two
    return scale >= 1 && scale <= kMostDigits ? fmt::format("{:.0f}", scale) : fmt::format("2^{}", std::ilogb(scale));
}

Expected<double> parseJitter(std::string_view text)
{
    const Expected<double> fraction = parseFraction(trimmed(text, kLineBlanks));
    if (!fraction.ok()) return fraction;
    if (fraction.value() < 0 || fraction.value() > 1)
        return Error{fmt::format("a jitter of {} is not allowed; 0 % to 100 %", trimmed(text, kLineBlanks))};
    return fraction;
}

std::string showJitter(double fraction) { return showShare(fraction); }

Expected<double> parseShare(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    const Expected<double> share = parseFraction(text);
    if (share.ok() && !(share.value() >= 0 && share.value() <= 1)) return Error{fmt::format("a share of {} is not allowed; 0 % to 100 %", text)};
    return share;
}

std::string showShare(double share) { return fmt::format("{:.6g}%", share * 100); }

Expected<MaybeShare> parseMaybeShare(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty() || text == "auto") return MaybeShare{};
    const Expected<double> share = parseShare(text);
    if (!share.ok()) return share.error();
    return MaybeShare{share.value()};
}

std::string showMaybeShare(const MaybeShare& share) { return share ? showShare(*share) : "auto"; }

Expected<std::uint64_t> parseSeed(std::string_view text)
{
    text = trimmed(text, kLineBlanks);
    std::uint64_t seed = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (fault == std::errc{} && end == text.data() + text.size()) return seed;
    return Error{fmt::format("\"{}\" is no seed; a whole number from 0 to {}", text, std::numeric_limits<std::uint64_t>::max())};
}

std::string showSeed(std::uint64_t seed) { return fmt::format("{}", seed); }

namespace {

// With blanks around each entry; none of an empty text.
template <class T, class Parse>
Expected<std::vector<T>> parseEntries(std::string_view text, Parse parse)
{
    text = trimmed(text, kLineBlanks);
    if (text.empty()) return std::vector<T>{};
    return traces::parseList<T>(text, [&](std::string_view cell) { return parse(trimmed(cell)); });
}

} // namespace

Expected<std::vector<int>> parsePartition(std::string_view text)
{
    if (trimmed(text, kLineBlanks) == "balanced") return std::vector<int>{};
    return parseEntries<int>(text, [](std::string_view word) -> Expected<int> {
        int layers = 0;
        const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), layers);
        if (fault != std::errc{} || end != word.data() + word.size() || layers < 1)
            return Error{fmt::format("\"{}\" is no number of layers; write one whole number above 0 for each stage, such as 2, 3, 3", word)};
        return layers;
    });
}

Expected<traces::Bytes> parseMaybeSize(std::string_view text)
{
    const std::string_view word = trimmed(text, kLineBlanks);
    if (word.empty() || word == "not known") return traces::Bytes{0};
    return traces::parseSize(word);
}

std::string showMaybeSize(traces::Bytes bytes) { return bytes == 0 ? "not known" : showSize(bytes); }

namespace {

Expected<std::vector<double>> parseFactorsFrom(std::string_view text, double least, double most, std::string_view ofWhat)
{
    return parseEntries<double>(text, [=](std::string_view word) -> Expected<double> {
        double factor = 0;
        const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), factor);
        if (fault != std::errc{} || end != word.data() + word.size() || !(factor >= least && factor <= most))
            return Error{fmt::format("\"{}\" is no factor; write one number from {:.0f} to {:.0f} for each {}, such as 1, 1.5, 1", word, least, most, ofWhat)};
        return factor;
    });
}

} // namespace

Expected<std::vector<double>> parseFactors(std::string_view text) { return parseFactorsFrom(text, 0, kMostNumber, "rank"); }
Expected<std::vector<double>> parseSlowdown(std::string_view text) { return parseFactorsFrom(text, 1, engine::kMostSlowdown, "stage"); }

std::string showFactors(const std::vector<double>& factors) { return fmt::format("{}", fmt::join(factors, ", ")); }

Expected<std::vector<traces::TimeNs>> parseDurations(std::string_view text)
{
    return parseEntries<traces::TimeNs>(text, [](std::string_view word) { return traces::parseDuration(word); });
}

std::string showDurations(const std::vector<traces::TimeNs>& times)
{
    std::vector<std::string> words;
    for (const traces::TimeNs time : times) words.push_back(showDuration(time));
    return fmt::format("{}", fmt::join(words, ", "));
}

std::string showPartition(const std::vector<int>& partition) { return fmt::format("{}", fmt::join(partition, ", ")); }

} // namespace stagecraft::ui
