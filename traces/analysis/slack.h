// SPDX-License-Identifier: Apache-2.0
//
// How far each action of a step may be delayed without the step getting longer: its slack. What lies on the critical path has none;
// of the rest it tells up to where a slower rank or a later transfer costs the step nothing.
//
//   rank 0   |F0|F1|  |B0|  |B1|     F1 and B0 on rank 0 may begin one later, each by itself; all others have no slack
//   rank 1      |F0|B0|F1|B1|
//
// From slices, the order on the lanes and the typed edges alone, as the critical path: an action passes a delay on to the next on its
// lane and to those that its edges lead to, less what these waited for something else meanwhile. How long an action takes, and what it
// waited beside its reasons, stays as it is. A copy or collective that no edge leads to follows what ended last before it on each
// other lane of its rank. Not in a trace, and so not in the slack, is what a delay does to transfers that share a way, or to a sender
// that waits for its receiver. Paused time does not count.
//
//   const StepSlack slack = slackOf(trace, StepIndex(trace), Step{0}).value();
//   slack.of(selected);               // nullopt: no action of that step
#pragma once

#include "traces/store/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft::traces {

class StepIndex;

class StepSlack {
public:
    [[nodiscard]] std::optional<TimeNs> of(SliceRef slice) const;

private:
    friend Expected<StepSlack> slackOf(const Trace& trace, const StepIndex& index, Step step);

    struct Run { // slices [begin, end) of a lane
        LaneId lane{};
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::size_t first = 0; // place of the first one's slack
    };
    [[nodiscard]] std::optional<std::size_t> placeOf(SliceRef slice) const;

    std::vector<Run> runs_; // by lane, then by begin
    std::vector<TimeNs> slack_;
};

// An error names the step when it has no computing slice. Linear in the slices and edges of the step's lanes.
Expected<StepSlack> slackOf(const Trace& trace, const StepIndex& index, Step step);

} // namespace stagecraft::traces
