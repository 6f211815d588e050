// SPDX-License-Identifier: Apache-2.0
//
// How long the completed steps of a run took, and which of them stands for it. The first step is left out where there are
// three or more: it meets cold caches and fresh memory. The middle is a step that happened, of an even number the shorter
// of both middles, so that its figures by rank belong to the time that is told.
//
//   const std::vector<StepTime> counted = countedSteps(trace.steps(), trace.pauses());
//   if (!counted.empty()) show(middleStep(counted).time, counted.size());
#pragma once

#include "traces/store/trace.h"

#include <vector>

namespace stagecraft::traces {

struct StepTime {
    Step step{};
    TimeNs time = 0; // without pauses

    bool operator==(const StepTime&) const = default;
};

// How many of a run's first steps do not count.
constexpr std::size_t stepsLeftOut(std::size_t steps) { return steps >= 3 ? 1 : 0; }

std::vector<StepTime> countedSteps(const std::vector<StepSpan>& steps, const std::vector<Interval>& pauses);

// Not for an empty list.
StepTime middleStep(std::vector<StepTime> counted);

} // namespace stagecraft::traces
