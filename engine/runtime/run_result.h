// SPDX-License-Identifier: Apache-2.0
//
// What a run amounts to, from its totals: medians per stage, the step they predict by simulation, and how close the
// measured step came. Pure, without LibTorch.
//
//   predicted   simulated from the median F, B and optimizer times of each stage and the median hand-off
//   ideal       the same with hand-offs that take no time
//   efficiency  ideal / measured step
// The first step is left out of all of them where there are three or more (traces/analysis/step_times.h).
#pragma once

#include "engine/plan/plan.h"
#include "engine/runtime/run_totals.h"
#include "engine/session/session_message.h"

namespace stagecraft::runtime {

struct RunFacts {
    const engine::Plan& plan;
    const engine::Schedule& schedule;
    const engine::Partition& partition;
    const RunTotals& totals;
    std::vector<std::vector<std::int64_t>> outputs;
    engine::GradientCheck check = engine::GradientCheck::Off;
    double maxAbsDiff = 0;
    double peakFlops = 0; // of one rank, per second; 0: not measured
    std::optional<engine::TextLearned> text = {};
    // Where the run counts what autograd saves: by stage, and the most of each rank.
    std::vector<engine::StageActivations> stageActivations = {};
    std::vector<engine::Bytes> peakActivations = {};
};

// An error where no step was completed, or the costs cannot be simulated.
engine::Expected<engine::RunResult> summarizeRun(const RunFacts& facts);

} // namespace stagecraft::runtime
