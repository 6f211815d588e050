// SPDX-License-Identifier: Apache-2.0
//
// Where each step lies on the lanes of work of a trace, found in one pass. The figures of all steps then cost no more than
// the trace is long; asked for one by one, each would pass over the whole trace.
//
//   const StepIndex index(trace);
//   for (const Step step : index.steps()) use(viewOf(trace, index, step));
#pragma once

#include "traces/store/trace.h"

#include <span>
#include <vector>

namespace stagecraft::traces {

// Lanes whose slices make a step: what computes, and the collectives beside it.
constexpr bool isLaneOfWork(LaneKind kind) { return kind == LaneKind::Compute || kind == LaneKind::Collective; }

class StepIndex {
public:
    // Slices [begin, end) of a lane, all of one step.
    struct Run {
        Step step{};
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
    };

    explicit StepIndex(const Trace& trace);

    [[nodiscard]] const std::vector<Step>& steps() const { return steps_; } // that have computing slices, ascending
    // Runs of the step by begin: mostly one, more where steps overlap on the lane. Of a lane of work; others have none.
    [[nodiscard]] std::span<const Run> runs(LaneId lane, Step step) const;

private:
    std::vector<Step> steps_;
    std::vector<std::vector<Run>> lanes_; // by step, then by begin
};

} // namespace stagecraft::traces
