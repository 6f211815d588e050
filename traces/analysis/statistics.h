// SPDX-License-Identifier: Apache-2.0
//
// How long actions and hand-offs took, by which a measured run becomes the costs of the next simulation. Paused time is
// left out.
//
//   for (const ActionStatistics& s : actionStatistics(trace)) use(s.stage, s.kind, s.median);
//   Histogram times = histogramOf(actionTimes(trace).front().times);
//   std::optional<TimeNs> transfer = medianHandOff(trace);
#pragma once

#include "traces/store/trace.h"

#include <limits>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::traces {

struct ActionStatistics {
    Stage stage{};
    Flow flow = Flow::Single; // stages of two directions are counted apart
    ActionKind kind = ActionKind::None;
    std::size_t count = 0;
    TimeNs median = 0;
    TimeNs lowerQuartile = 0; // at least 25 % took so long or less
    TimeNs upperQuartile = 0; // 75 %
    TimeNs p95 = 0;           // 95 %
    TimeNs least = 0;
    TimeNs most = 0;
    // Those that took longer than the upper quartile by more than three times the distance of the quartiles (Tukey, Exploratory Data
    // Analysis, 1977: "far out"), the longest first.
    std::vector<SliceRef> outliers = {};

    [[nodiscard]] TimeNs outlierFrom() const { return upperQuartile + 3 * (upperQuartile - lowerQuartile); } // what is longer is one
    bool operator==(const ActionStatistics&) const = default;
};

struct StatisticsOptions {
    Step from{std::numeric_limits<std::int32_t>::min()}; // earlier steps are left out, for a first step that warms up
};

// One for each stage and kind of action on the compute lanes, by stage, direction and kind.
std::vector<ActionStatistics> actionStatistics(const Trace& trace, const StatisticsOptions& options = {});

// The same with the times themselves, each without pauses, the shortest first. What a stopped one gives is of no use.
struct ActionTimes {
    ActionStatistics statistics;
    std::vector<TimeNs> times;
};
std::vector<ActionTimes> actionTimes(const Trace& trace, const StatisticsOptions& options = {}, const std::stop_token& stop = {});

// How many values lie in [from + i width, from + (i + 1) width); the last interval has its end as well.
struct Histogram {
    TimeNs from = 0;
    TimeNs width = 1;
    std::vector<std::size_t> counts;
    bool operator==(const Histogram&) const = default;
};

// Intervals as wide as Freedman and Diaconis have it (Zeitschrift fuer Wahrscheinlichkeitstheorie 57, 1981): twice the distance of the
// quartiles over the cube root of the count, or as much less as lets the last end with the largest; at most `mostIntervals`, and one where all
// values are the same. None for no values.
Histogram histogramOf(std::vector<TimeNs> values, std::size_t mostIntervals = 40);

// Median over the data edges between ranks of the time from the producer's end until the data could be used. Nothing where
// no edge crosses ranks.
std::optional<TimeNs> medianHandOff(const Trace& trace, const StatisticsOptions& options = {});

} // namespace stagecraft::traces
