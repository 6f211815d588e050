// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/schedule/handoff.h"
#include "engine/simulate/cost_table.h"

namespace stagecraft::engine {

// Of one micro-batch, or of the mean slice: a stage's output to the next one, whose gradient comes back with as many.
inline Bytes handedBytes(const CostTable& costs, const Handoff& handoff)
{
    const bool ahead = handoff.send.kind() == ActionKind::SendForward;
    return costs.stages[index(ahead ? handoff.send.stage() : handoff.recv.stage())].outputBytes;
}

} // namespace stagecraft::engine
