// SPDX-License-Identifier: Apache-2.0
//
// How long the actions of a trace took, with their spread, as JSON and for people: of a file by analyze, of what was just measured by run.
//
//   const traces::Durations durations = traces::durationsOf(trace, kHistogramIntervals);
//   text += durationsText(trace, durations);
#pragma once

#include "app/cli/figures_json.h"
#include "traces/analysis/durations.h"

#include <cstddef>
#include <string>

namespace stagecraft::cli {

inline constexpr std::size_t kHistogramIntervals = 12; // a character each

// {actions: [{stage, rank, chunk, direction, kind, count, median_ns, lower_quartile_ns, ..., total_ns, share}], hand_off_median_ns}
Json durationsJson(const traces::Trace& trace, const traces::Durations& durations);
std::string durationsText(const traces::Trace& trace, const traces::Durations& durations);

} // namespace stagecraft::cli
