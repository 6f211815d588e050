// SPDX-License-Identifier: Apache-2.0
//
// The schedule and the costs that a trace shows, so that it can be simulated again: the order in which the ranks of a step
// computed, and the median times of actions and hand-offs over all steps. The first step is left out of the medians where there
// are three or more. Works without the plan that made the trace.
//
//   TraceModel model = modelOf(trace, traces::Step{2}).value();
//   simulate(model.schedule, model.costs);
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"
#include "traces/store/trace.h"

namespace stagecraft::engine {

struct TraceModel {
    Schedule schedule;
    CostTable costs; // times alone, no sizes; its origin names the trace's label
};

// An error where the step computes nothing that is an action, or not what a schedule can hold (gaps in the numbers of stages).
Expected<TraceModel> modelOf(const traces::Trace& trace, traces::Step step);

} // namespace stagecraft::engine
