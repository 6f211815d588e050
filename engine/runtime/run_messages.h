// SPDX-License-Identifier: Apache-2.0
//
// What a run says about itself, in words.
#pragma once

#include "engine/runtime/runnable.h"
#include "engine/session/session_message.h"
#include "traces/store/trace.h"

#include <string_view>

namespace stagecraft::runtime {

// The opening of the run's trace.
traces::TraceInfo openingInfo(const RunnablePlan& runnable);

engine::ProgressMessage progressAfter(int completedSteps, int allSteps);

engine::FailureMessage actionFailure(const traces::Work& work, traces::Step step, traces::Rank rank,
                                     std::string_view reason);

struct GradientDifference {
    int stage = 0;
    std::size_t parameter = 0; // of the stage
    traces::Step step{};
    double difference = 0; // largest
    double scale = 0;      // largest expected gradient
};
engine::FailureMessage gradientFailure(const GradientDifference& found);

} // namespace stagecraft::runtime
