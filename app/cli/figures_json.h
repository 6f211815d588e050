// SPDX-License-Identifier: Apache-2.0
//
// The figures of a step as JSON, with the keys of the command line's contract; simulate, run and analyze share them.
#pragma once

#include "engine/explain/waterfall.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/step_index.h"

#include <nlohmann/json.hpp>

namespace stagecraft::cli {

using Json = nlohmann::ordered_json;

// `index` is the trace's: who asks for many steps makes it once.
// [{rank, busy_ns, idle_ns, first_start_ns, last_end_ns, peak_activations, peak_memory_bytes, peak_memory_ns, peak_memory_by_class,
//   peak_memory_held, memory_limit_bytes, runs_out_ns, idle_by_cause}]; of the memory there is null what the trace does not know
Json ranksJson(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures);

// {schedule, ranks, chunks, microbatches, makespan_ns, ..., steady_state, critical_path, per_rank}; steady_state is null where the
// step has none
Json figuresJson(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures);

// {step_ns, measured, bars: {ideal_work, structure, imbalance, communication, overhead}}, in ns
Json waterfallJson(const engine::Waterfall& waterfall);

// [{rank, host, offset_ns, error_ns, drift_ppm}] of the ranks that had clocks of their own; drift is null after one reading
Json clocksJson(const traces::Trace& trace);

// Two blanks deep, with a final newline; text that is no UTF-8 (file names, imported traces) is replaced, never thrown over.
std::string jsonText(const Json& json);

} // namespace stagecraft::cli
