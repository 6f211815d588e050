// SPDX-License-Identifier: Apache-2.0
//
// The slices of one step by rank, picked from the lanes of work of a trace: what the figures of a step are taken from.
#pragma once

#include "traces/analysis/pauses.h"
#include "traces/analysis/step_index.h"
#include "traces/store/trace.h"

#include <optional>
#include <vector>

namespace stagecraft::traces {

struct RankView {
    Rank rank{};
    LaneId lane{};    // its first compute lane
    Interval span{};  // first start to last end of what counts; where nothing does, both are the end of the step
    SliceRef first{}; // the slices where the span begins and ends
    SliceRef last{};
    std::optional<SliceRef> gather; // of weights, for which the first slice waited; it lies before the span, but in the step
    bool works = false;           // has anything that counts
    std::vector<SliceRef> slices; // everything on its lanes of work in this step, by begin
};

struct StepView {
    Interval span{};
    bool computes = false;       // has a computing slice
    std::vector<RankView> ranks; // every rank with a compute lane, ascending
};

// What begins the span of a rank: computing, and the reduction of gradients. A receive or a gather of weights that was posted early
// does not make a rank's step longer, nor does a send that drains late.
constexpr bool beginsSpan(ActionKind kind) { return isCompute(kind) || kind == ActionKind::ReduceGrad || kind == ActionKind::AllReduce; }
// What ends it: the same, and the gather of the weights that were updated.
constexpr bool endsSpan(ActionKind kind) { return beginsSpan(kind) || kind == ActionKind::Unshard; }

StepView viewOf(const Trace& trace, const StepIndex& index, Step step);

// Computing time without pauses; where compute lanes of one rank overlap, shared time counts once.
TimeNs busyTime(const Trace& trace, const RankView& rank, const Pauses& pauses);

} // namespace stagecraft::traces
