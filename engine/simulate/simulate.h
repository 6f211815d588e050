// SPDX-License-Identifier: Apache-2.0
//
// Event simulation of a schedule: ranks execute their lists in order, one computing action at a time; an action starts when
// its rank is free and what it needs has arrived. A transfer between ranks takes CostTable::transfer on the edge and
// occupies neither side (the model of the Zero-Bubble paper, arXiv 2401.10241); stages of one rank hand over at once.
// The result is a trace labelled simulated on a virtual clock from 0.
//
// With a machine model (machine_model.h), sizes of what is sent, collectives or copies in the schedule, or several steps, the
// simulation goes by the order of time and keeps account of all of it (machine.h).
//
//   Trace trace = simulate(schedule, costs).value();
//   StepFigures figures = stepFigures(trace, Step{0}).value();
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/cost_table.h"
#include "traces/store/trace.h"

#include <stop_token>

namespace stagecraft::engine {

// Errors: a schedule that cannot be executed (the message names the waiting ranks; validate() tells the whole circle),
// a cost table that does not have the schedule's number of stages, or `stop`, which another thread may ask for at any time.
Expected<traces::Trace> simulate(const Schedule& schedule, const CostTable& costs, std::stop_token stop = {}, int steps = 1);

inline constexpr int kMostSimulatedSteps = 10'000;

// A simulation that may not come to its end: the trace as far as it came, and the ranks that wait for each other there.
struct PartialSimulation {
    traces::Trace trace;
    Schedule schedule; // that was executed, with SEND and RECV where the machine's sends wait or occupy; positions are its
    std::vector<WaitingRank> deadlock; // empty where it came to its end
};

// Errors: what is wrong with a schedule beside that it waits for ever, and those of simulate().
Expected<PartialSimulation> simulateUntilStuck(const Schedule& schedule, const CostTable& costs, std::stop_token stop = {});

} // namespace stagecraft::engine
