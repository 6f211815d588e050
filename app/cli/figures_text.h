// SPDX-License-Identifier: Apache-2.0
//
// The figures of a step for people: the step's own, each bubble with its formula, then tables of the ranks.
#pragma once

#include "engine/explain/waterfall.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/step_index.h"

#include <string>

namespace stagecraft::cli {

// `index` is the trace's: who asks for many steps makes it once. With the memory peaks and what they consist of, where the trace knows any memory.
std::string figuresText(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures);

// A bar per part, drawn in characters, and the step that they sum up to.
std::string waterfallText(const engine::Waterfall& waterfall);

// "1f1b, 4 ranks, 2 chunks, 8 micro-batches"
std::string shapeText(const traces::TraceInfo& info);

// How the clocks of ranks in processes of their own stand to the trace's, a line for each; empty where all share one.
std::string clocksText(const traces::Trace& trace);

} // namespace stagecraft::cli
