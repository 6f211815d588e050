// SPDX-License-Identifier: Apache-2.0
//
// On which of two streams of its GPU a rank computes what. The two of an overlapped pair are to run side by side, and autograd runs a
// backward on the stream that its forward ran on: so each forward of a pair takes the stream that its partner's unit is not on, and
// whatever is done for a unit stays on its stream. All else is on the first. Pure.
//
//   0F0    (0F1;0B0)   (0F2;0B1)     0B2
//   F0     B0          F2            B2        the first
//          F1          B1                      the second
//
//   const UnitStreams streams(list);           // what the rank executes in a step, in its order
//   device.turnTo(streams.of(work));
#pragma once

#include "engine/schedule/schedule.h"

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

class UnitStreams {
public:
    explicit UnitStreams(const std::vector<traces::Action>& list);

    [[nodiscard]] std::size_t of(const traces::Work& work) const; // 0 or 1

private:
    using Unit = std::tuple<traces::Flow, traces::Stage, traces::MicroBatch>;
    static Unit unitOf(const traces::Work& work) { return {work.flow, work.stage, work.microbatch}; }
    std::set<Unit> second_;
};

// Whether the rank has pairs for which a second stream is of use. Not where units share tensors, as slices of a sequence do, or where
// weights of several versions come and go: what one stream took the other might still use when it is given back.
[[nodiscard]] bool runsPairsSideBySide(const engine::Schedule& schedule, traces::Rank rank);

} // namespace stagecraft::runtime
