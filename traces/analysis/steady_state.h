// SPDX-License-Identifier: Apache-2.0
//
// The steady state of a step: what one more micro-batch costs once the pipeline is full, from slices alone.
//
//   bottleneck       the rank with the most busy time; of several, the first
//   steady phase     while every rank goes both forward and backward, from the last rank's first backward to the first rank's last
//                    forward; of that the longest part in which the step repeats itself. A schedule that does all forwards first
//                    (GPipe) has none.
//   period           the time after which all ranks do the same again for later micro-batches, per micro-batch: the same actions in
//                    the same order, each later by the same time, or in a run that jitters within an eighth of it. A rank has v
//                    forwards for each, times the slices of a sequence. It is looked for over as many micro-batches as there are
//                    ranks first: 1F1B repeats itself only after those where transfers cost time (closed form of its published
//                    column: 2(p-1)m/p transfers), an interleaved order in groups of that many. Where nothing repeats there is
//                    none, as in bidirectional and V orders with few micro-batches.
//   steady bubble    the share of the whole periods in the phase that ranks do not compute, on average
//
//   if (const auto steady = steadyState(trace, Step{0})) use(steady->period, steady->bubble);
//
// Across steps that are chained, the time from step to step is the median distance of their first starts on the bottleneck.
#pragma once

#include "traces/store/trace.h"

#include <optional>

namespace stagecraft::traces {

class StepIndex;

struct SteadyState {
    Rank bottleneck{};
    Interval phase{};
    double period = 0; // ns per micro-batch; a mean over several, so not whole
    double rate = 0;   // micro-batches per second
    double bubble = 0;
    int over = 0; // micro-batches of one distance

    bool operator==(const SteadyState&) const = default;
};

// Nothing where the step has no steady phase, or one too short to hold a period.
std::optional<SteadyState> steadyState(const Trace& trace, Step step);
std::optional<SteadyState> steadyState(const Trace& trace, const StepIndex& index, Step step); // for who asks for several

// In ns: the median distance of the first starts of successive steps, on the rank that is busiest over all of them. Nothing where
// there are fewer than two steps. The first step is left out where there are three or more: the pipeline fills in it.
std::optional<double> stepPeriod(const Trace& trace);

} // namespace stagecraft::traces
