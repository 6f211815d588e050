// SPDX-License-Identifier: Apache-2.0
//
// The trace of a simulated step, written rank by rank once all moments are known: slices, the edges that say what each waited
// for, transfers, and the bytes that each rank holds.
//
//   Timing timing(schedule, costs);
//   if (timing.calculate(stop)) return simulatedTrace(schedule, costs, timing, stop);
#pragma once

#include "engine/simulate/timing.h"
#include "traces/store/trace.h"

#include <optional>
#include <stop_token>

namespace stagecraft::engine {

// What the trace of a simulation says of itself.
traces::TraceInfo simulatedInfo(const Schedule& schedule, const CostTable& costs);

// Nothing when `stop` was asked for, at which it looks once per rank. Precondition: timing.calculate() returned true.
std::optional<traces::Trace> simulatedTrace(const Schedule& schedule, const CostTable& costs, const Timing& timing,
                                            const std::stop_token& stop);

} // namespace stagecraft::engine
