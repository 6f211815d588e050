// SPDX-License-Identifier: Apache-2.0
//
// How long the actions of a trace took, with their spread, as JSON and for people: of a file by analyze, of what was just measured by run.
//
//   const Durations durations = durationsOf(trace);
//   text += durationsText(trace, durations);
#pragma once

#include "app/cli/figures_json.h"
#include "traces/analysis/statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace stagecraft::cli {

// How long actions and hand-offs took in all steps that count.
struct Durations {
    struct Row {
        traces::ActionStatistics statistics;
        traces::Histogram histogram;
    };
    bool firstLeftOut = false;
    std::vector<Row> actions;
    std::optional<traces::TimeNs> handOff;
};

Durations durationsOf(const traces::Trace& trace);

// {actions: [{stage, rank, chunk, direction, kind, count, median_ns, lower_quartile_ns, ...}], hand_off_median_ns}
Json durationsJson(const traces::Trace& trace, const Durations& durations);
std::string durationsText(const traces::Trace& trace, const Durations& durations);

} // namespace stagecraft::cli
