// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/rank_clocks.h"

#include "traces/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace stagecraft::traces {

namespace {

std::vector<ClockReading> byTime(std::vector<ClockReading> readings)
{
    std::stable_sort(readings.begin(), readings.end(), [](const ClockReading& a, const ClockReading& b) { return a.at < b.at; });
    return readings;
}

} // namespace

RankClock::RankClock(std::vector<ClockReading> readings) : readings_(byTime(std::move(readings))) {}

TimeNs RankClock::onTrace(TimeNs own) const
{
    if (readings_.empty()) return own;
    const auto next = std::upper_bound(readings_.begin(), readings_.end(), own, [](TimeNs t, const ClockReading& r) { return t < r.at; });
    if (next == readings_.begin()) return own + readings_.front().offset;
    const ClockReading& before = *std::prev(next);
    if (next == readings_.end()) return own + before.offset;
    // Only the difference of two offsets becomes a double: it is small.
    const double part = static_cast<double>(own - before.at) / static_cast<double>(next->at - before.at);
    return own + before.offset + std::llround(part * static_cast<double>(next->offset - before.offset));
}

std::vector<ClockSummary> clockSummaries(const Trace& trace)
{
    std::map<Rank, std::vector<ClockReading>> byRank;
    for (const ClockReading& reading : trace.clockReadings()) byRank[reading.rank].push_back(reading);
    std::vector<ClockSummary> summaries;
    for (auto& [rank, unsorted] : byRank) {
        const std::vector<ClockReading> readings = byTime(std::move(unsorted));
        const ClockReading& first = readings.front();
        const ClockReading& last = readings.back();
        ClockSummary summary{.rank = rank, .host = last.host, .offset = last.offset, .error = 0, .driftPpm = {}, .shared = true};
        for (const ClockReading& reading : readings) {
            summary.error = std::max(summary.error, reading.error);
            summary.shared = summary.shared && reading.offset == 0 && reading.error == 0;
        }
        if (last.at > first.at) summary.driftPpm = 1e6 * static_cast<double>(last.offset - first.offset) / static_cast<double>(last.at - first.at);
        summaries.push_back(std::move(summary));
    }
    return summaries;
}

std::string toText(const ClockSummary& clock)
{
    const std::string who = fmt::format("rank {}{}", clock.rank.value, clock.host.empty() ? "" : " on " + clock.host);
    if (clock.shared) return who + ": the trace's own clock";
    const std::string offset = (clock.offset < 0 ? "-" : "+") + formatDuration(std::abs(clock.offset));
    return fmt::format("{}: {} ± {}{}", who, offset, formatDuration(clock.error),
                       clock.driftPpm ? fmt::format(", drift {:.2g} ppm", *clock.driftPpm) : "");
}

} // namespace stagecraft::traces
