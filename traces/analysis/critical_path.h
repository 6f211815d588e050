// SPDX-License-Identifier: Apache-2.0
//
// The critical path of a step: the chain of actions, transfers and waits that ends at the step's last end, and of which each
// link begins where the one before it ended. From slices, the order on the lanes and the typed edges alone, so it is found in
// simulated, measured, emulated and imported traces alike. Shortening anything that is not on it does not shorten the step.
//
//   rank 0   |F0|F1|             |B0|B1|        the path: F0, F0->1, F0 on rank 1, B0, B0->0, B0, B1
//   rank 1      ~~|F0|B0|~~
//
// An action began because of what was fulfilled last: the slice before it on its lane, or the edge that was ready last, be it in
// the middle of the slice that it comes from (a bucket of gradients, reduced while the backward goes on). Where
// several were at the same moment, the lane's own order is followed, so that the path changes ranks as rarely as it can. What
// lies between that moment and the begin is a wait. The links tile the step's span, their lengths sum up to its makespan;
// paused time is in no length.
//
//   const CriticalPath path = criticalPath(trace, Step{0}).value();
//   path.total.transfer;              // time of the step that transfers cost
//   for (const SliceRef slice : path.slices()) highlight(slice);
#pragma once

#include "traces/store/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft::traces {

class StepIndex;

enum class PathKind : std::uint8_t {
    Compute,  // an action of a rank
    Transfer, // data on its way, a copy or a collective
    Wait,     // nothing of the two: a late start, memory, the host
};
std::string_view pathKindText(PathKind kind); // "compute", "transfer", "wait"

struct PathLink {
    PathKind kind = PathKind::Compute;
    Interval span{};
    TimeNs length = 0; // of the span, without pauses
    Rank rank{};       // that computes, sends or waits
    Stage stage{};     // of the action that computes, that made what is sent, or that waits
    SliceRef from{};   // the slice itself; of a transfer or wait between two slices, the one before
    SliceRef to{};     // the same slice, or the one behind
    std::optional<EdgeKind> edge; // of a transfer or a wait that follows an edge

    bool operator==(const PathLink&) const = default;
};

struct PathTimes {
    TimeNs compute = 0;
    TimeNs transfer = 0;
    TimeNs wait = 0;

    void add(PathKind kind, TimeNs length)
    {
        (kind == PathKind::Compute ? compute : kind == PathKind::Transfer ? transfer : wait) += length;
    }
    [[nodiscard]] TimeNs sum() const { return compute + transfer + wait; }
    bool operator==(const PathTimes&) const = default;
};

struct CriticalPath {
    Step step{};
    Interval span{};             // of the step
    std::vector<PathLink> links; // in the order of time; none is empty
    PathTimes total;             // sums up to the makespan
    std::vector<PathTimes> ranks;  // by Rank
    std::vector<PathTimes> stages; // by Stage; of two directions, a stage's two copies together

    [[nodiscard]] std::vector<SliceRef> slices() const; // of the computing links, in the order of time
};

// An error names the step when it has no computing slice. The walk is linear in the slices on the path; finding the step's
// span passes over the trace once.
Expected<CriticalPath> criticalPath(const Trace& trace, Step step);
Expected<CriticalPath> criticalPath(const Trace& trace, const StepIndex& index, Step step); // for who asks for several

} // namespace stagecraft::traces
