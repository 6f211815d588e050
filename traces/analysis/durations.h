// SPDX-License-Identifier: Apache-2.0
//
// How long the actions of a trace took, stage by stage and kind by kind, over all steps that count: what the command line prints and the
// window shows. One pass over the trace; of a trace that grows, another thread takes a copy.
//
//   const Durations durations = durationsOf(trace, 12);
//   for (const DurationRow& row : durations.rows) show(row.statistics.kind, row.statistics.median, row.histogram);
#pragma once

#include "traces/analysis/statistics.h"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::traces {

// Who runs a stage, and which of that rank's stages in its direction it is.
struct StagePlace {
    Rank rank{};
    int chunk = 0;

    bool operator==(const StagePlace&) const = default;
};
// Nothing where the trace does not say it.
std::optional<StagePlace> placeOf(const TraceInfo& info, Stage stage, Flow flow);

struct DurationRow {
    ActionStatistics statistics;
    Histogram histogram;
    TimeNs total = 0;            // of all of them
    std::optional<double> share; // of the time in which any rank is busy, 0 to 1; nothing for what is not computing
    std::optional<StagePlace> place;
};

struct Durations {
    bool firstLeftOut = false;     // of the steps: it meets cold caches (step_times.h)
    std::vector<DurationRow> rows; // by stage, direction and kind
    std::optional<TimeNs> handOff; // between ranks, the median
};

// Histograms have at most that many intervals. What a stopped one gives is of no use.
Durations durationsOf(const Trace& trace, std::size_t mostIntervals, const std::stop_token& stop = {});

} // namespace stagecraft::traces
