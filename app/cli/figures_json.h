// SPDX-License-Identifier: Apache-2.0
//
// The figures of a step as JSON, with the keys of the command line's contract; simulate, run and analyze share them.
#pragma once

#include "traces/analysis/figures.h"

#include <nlohmann/json.hpp>

namespace stagecraft::cli {

using Json = nlohmann::ordered_json;

// [{rank, busy_ns, idle_ns, first_start_ns, last_end_ns, peak_activations, peak_memory_bytes, idle_by_cause}]
Json ranksJson(const traces::StepFigures& figures);

// {schedule, ranks, chunks, microbatches, makespan_ns, ..., per_rank}
Json figuresJson(const traces::TraceInfo& info, const traces::StepFigures& figures);

// Two blanks deep, with a final newline; text that is no UTF-8 (file names, imported traces) is replaced, never thrown over.
std::string jsonText(const Json& json);

} // namespace stagecraft::cli
