// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep_axis.h"

#include "traces/base/parse_list.h"
#include "traces/base/text.h"
#include "traces/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace stagecraft::engine {
namespace {

using traces::Error;
using traces::Expected;

constexpr std::array<SweepQuantityInfo, 19> kQuantities{{
    {SweepQuantity::Microbatches, "microbatches", "micro-batches m", SweepUnit::Count},
    {SweepQuantity::Ranks, "ranks", "ranks p", SweepUnit::Count},
    {SweepQuantity::Chunks, "chunks", "chunks per rank v", SweepUnit::Count},
    {SweepQuantity::Slices, "slices", "slices of a sequence k", SweepUnit::Count},
    {SweepQuantity::Group, "group", "micro-batches of a group", SweepUnit::Count},
    {SweepQuantity::MicrobatchSize, "microbatch-size", "micro-batch size b", SweepUnit::Count},
    {SweepQuantity::Forward, "forward", "forward of a rank", SweepUnit::Time},
    {SweepQuantity::Backward, "backward", "backward of a rank", SweepUnit::Time},
    {SweepQuantity::Latency, "latency", "latency of a hop", SweepUnit::Time},
    {SweepQuantity::Bandwidth, "bandwidth", "bandwidth of a hop", SweepUnit::Rate},
    {SweepQuantity::BoundaryBytes, "boundary-bytes", "bytes of a boundary", SweepUnit::Size},
    {SweepQuantity::ActivationBytes, "activation-bytes", "activation bytes of a micro-batch", SweepUnit::Size},
    {SweepQuantity::MemoryLimit, "memory-limit", "memory limit of a rank", SweepUnit::Size},
    {SweepQuantity::Jitter, "jitter", "jitter", SweepUnit::Share},
    {SweepQuantity::Offload, "offload", "offloaded activations", SweepUnit::Share},
    {SweepQuantity::RanksPerNode, "ranks-per-node", "ranks per node", SweepUnit::Count},
    {SweepQuantity::NodeLatency, "node-latency", "latency between nodes", SweepUnit::Time},
    {SweepQuantity::NodeBandwidth, "node-bandwidth", "bandwidth between nodes", SweepUnit::Rate},
    {SweepQuantity::Replicas, "replicas", "replicas of the pipeline", SweepUnit::Count},
}};

constexpr double kMostCount = 20'000'000;
constexpr int kEqualSteps = 20; // of a range that names none

std::optional<double> plainNumber(std::string_view text)
{
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

template <class T>
Expected<double> asNumber(const Expected<T>& parsed)
{
    if (!parsed.ok()) return parsed.error();
    return static_cast<double>(parsed.value());
}

Expected<double> parseValue(SweepUnit unit, std::string_view text)
{
    text = traces::trimmed(text);
    switch (unit) {
    case SweepUnit::Count: {
        const std::optional<double> count = plainNumber(text);
        if (!count || *count != std::floor(*count) || *count < 1 || *count > kMostCount)
            return Error{fmt::format("'{}' is no whole number from 1 to {:.0f}", text, kMostCount)};
        return *count;
    }
    case SweepUnit::Time: return asNumber(traces::parseDuration(text));
    case SweepUnit::Size: return asNumber(traces::parseSize(text));
    case SweepUnit::Rate: return traces::parseBandwidth(text);
    case SweepUnit::Share: {
        const Expected<double> share = traces::parseFraction(text);
        if (share.ok() && !(share.value() >= 0 && share.value() <= 1)) return Error{fmt::format("'{}' is not allowed; 0% to 100%", text)};
        return share;
    }
    }
    return Error{"unknown unit"};
}

Error tooMany()
{
    return Error{fmt::format("a sweep takes at most {} values; take a larger step, or a factor as in 1..1024*2", kMostSweepValues)};
}

// "a..b", "a..b+step" or "a..b*factor"; `dots` is where the dots stand.
Expected<SweepAxis> parseRange(const SweepQuantityInfo& info, std::string_view text, std::size_t dots)
{
    SweepAxis axis{.quantity = info.quantity, .values = {}, .geometric = false};
    const std::string_view rest = text.substr(dots + 2);
    const std::size_t sign = rest.find_first_of("+*");
    const Expected<double> first = parseValue(info.unit, text.substr(0, dots));
    if (!first.ok()) return first.error();
    const Expected<double> last = parseValue(info.unit, rest.substr(0, sign));
    if (!last.ok()) return last.error();
    if (last.value() < first.value()) return Error{fmt::format("'{}' goes down; write the smaller value first", text)};
    const bool counts = info.unit == SweepUnit::Count;
    if (sign != std::string_view::npos && rest[sign] == '*') {
        const std::optional<double> factor = plainNumber(traces::trimmed(rest.substr(sign + 1)));
        if (!factor || *factor <= 1) return Error{fmt::format("'{}' is no factor above 1", rest.substr(sign + 1))};
        if (first.value() <= 0) return Error{fmt::format("'{}' never grows by a factor; begin above 0", text)};
        for (double value = first.value(); value <= last.value() * (1 + 1e-9); value *= *factor) {
            axis.values.push_back(counts ? std::round(value) : value);
            if (axis.values.size() > kMostSweepValues) return tooMany();
        }
        axis.geometric = true;
        return axis;
    }
    double step = counts ? 1 : (last.value() - first.value()) / kEqualSteps;
    if (sign != std::string_view::npos) {
        const Expected<double> given = parseValue(info.unit, rest.substr(sign + 1));
        if (!given.ok()) return given.error();
        step = given.value();
    }
    if (step <= 0) step = 1; // first and last are one value
    const double count = std::floor((last.value() - first.value()) / step + 1e-9) + 1;
    if (count > static_cast<double>(kMostSweepValues)) return tooMany();
    for (int i = 0; i < static_cast<int>(count); ++i) axis.values.push_back(first.value() + i * step);
    return axis;
}

} // namespace

std::span<const SweepQuantityInfo> sweepQuantities() { return kQuantities; }

const SweepQuantityInfo& infoOf(SweepQuantity quantity)
{
    return *std::ranges::find(kQuantities, quantity, &SweepQuantityInfo::quantity);
}

Expected<SweepAxis> parseSweepAxis(std::string_view text)
{
    const std::size_t equals = text.find('=');
    const std::string_view key = traces::trimmed(text.substr(0, equals));
    const auto known = std::ranges::find(kQuantities, key, &SweepQuantityInfo::key);
    if (known == kQuantities.end()) {
        std::vector<std::string_view> keys;
        for (const SweepQuantityInfo& info : kQuantities) keys.push_back(info.key);
        return Error{fmt::format("'{}' is no quantity of a sweep; there are {}", key, fmt::join(keys, ", "))};
    }
    if (equals == std::string_view::npos) return Error{fmt::format("'{}' has no values; write {}=1..64, or a list", text, key)};
    return parseSweepValues(known->quantity, text.substr(equals + 1));
}

Expected<SweepAxis> parseSweepValues(SweepQuantity quantity, std::string_view text)
{
    const SweepQuantityInfo& info = infoOf(quantity);
    text = traces::trimmed(text);
    SweepAxis axis{.quantity = quantity, .values = {}, .geometric = false};
    if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
        Expected<SweepAxis> range = parseRange(info, text, dots);
        if (!range.ok()) return range.error().in(info.key);
        axis = std::move(range).value();
    } else {
        Expected<std::vector<double>> values =
            traces::parseList<double>(text, [&](std::string_view cell) { return parseValue(info.unit, cell); });
        if (!values.ok()) return values.error().in(info.key);
        axis.values = std::move(values).value();
        if (axis.values.size() > kMostSweepValues) return tooMany().in(info.key);
    }
    std::ranges::sort(axis.values);
    axis.values.erase(std::unique(axis.values.begin(), axis.values.end()), axis.values.end());
    return axis;
}

std::string sweepValueText(SweepQuantity quantity, double value)
{
    switch (infoOf(quantity).unit) {
    case SweepUnit::Count: return fmt::format("{:.0f}", value);
    case SweepUnit::Time: return traces::formatDuration(std::llround(value));
    case SweepUnit::Size: return traces::formatSize(std::llround(value));
    case SweepUnit::Rate: return traces::formatBandwidth(value);
    case SweepUnit::Share: return traces::formatPercent(value);
    }
    return {};
}

} // namespace stagecraft::engine
