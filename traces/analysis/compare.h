// SPDX-License-Identifier: Apache-2.0
//
// How well one trace foretells another, step by step: the same actions are looked up in both, and their durations and their
// places in the step are compared. Errors are relative to the actual trace: (predicted - actual) / actual, so -0.1 says
// that the prediction was 10 % too short. Paused time is left out of both.
//
//   for (const StepComparison& step : compareTraces(simulated, measured).value().steps) use(step.stepTimeError);
#pragma once

#include "traces/store/trace.h"

#include <optional>
#include <vector>

namespace stagecraft::traces {

struct KindComparison {
    ActionKind kind = ActionKind::None;
    std::size_t matched = 0;
    TimeNs predictedMedian = 0;
    TimeNs actualMedian = 0;
    // Of the relative errors of the single actions; those whose actual duration is 0 have none.
    double medianError = 0;
    double meanError = 0;

    bool operator==(const KindComparison&) const = default;
};

struct StepComparison {
    Step predicted{};
    Step actual{};
    TimeNs predictedTime = 0; // makespans
    TimeNs actualTime = 0;
    double stepTimeError = 0;
    std::vector<KindComparison> kinds; // those that both have
    // Distance between the two beginnings of an action, each counted from the first start of its step.
    TimeNs medianShift = 0;
    TimeNs maxShift = 0;
    SliceRef furthest{}; // the slice of the actual trace that is shifted most
    std::size_t matched = 0;
    std::size_t onlyPredicted = 0;
    std::size_t onlyActual = 0;

    bool operator==(const StepComparison&) const = default;
};

// Actions of the compute lanes are the same when their texts are; of several alike the first is matched with the first. An
// error says which trace does not have the step, or that they have no action in common.
Expected<StepComparison> compareSteps(const Trace& predicted, Step predictedStep, const Trace& actual, Step actualStep);

struct TraceComparison {
    std::vector<StepComparison> steps;
    // Steps that are left out, as the other trace does not have them.
    std::vector<Step> onlyPredicted;
    std::vector<Step> onlyActual;
};

// Every step of the actual trace with the step of that number, or with the only one of a prediction that has one. An error where no step
// has one to be held against.
Expected<TraceComparison> compareTraces(const Trace& predicted, const Trace& actual);

} // namespace stagecraft::traces
