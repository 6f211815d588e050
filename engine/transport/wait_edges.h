// SPDX-License-Identifier: Apache-2.0
//
// What waits at a hand-off mean, by the schedule: who waits, who can end it, and in words.
//
//   handoff.watch(&graph, [&](const BoxAddress& box) { return inputEdge(schedule, box); });
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/transport/handoff.h"
#include "engine/transport/wait_graph.h"

namespace stagecraft::runtime {

inline traces::Stage senderOf(const BoxAddress& box)
{
    return traces::Stage{box.receiver.value + (box.direction == Direction::Forward ? -1 : 1)};
}
inline bool staysOnItsRank(const engine::Schedule& schedule, const BoxAddress& box)
{
    return schedule.rankOf(box.flow, senderOf(box)) == schedule.rankOf(box.flow, box.receiver);
}

// The receiver waits for what the other stage makes.
WaitEdge inputEdge(const engine::Schedule& schedule, const BoxAddress& box);
// The sender waits until the receiver has taken one of so many.
WaitEdge roomEdge(const engine::Schedule& schedule, const BoxAddress& box, std::size_t depth);
// One of two copies of weights waits for the gradients of the other: gradientBox() in engine/runtime/boundary.h.
WaitEdge copyEdge(const engine::Schedule& schedule, const BoxAddress& box);

} // namespace stagecraft::runtime
