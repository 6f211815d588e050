// SPDX-License-Identifier: Apache-2.0
//
// How long an action takes by a cost table, jitter included. In a header because it stands in the innermost loop of a simulation.
//
//   clock += actionTime(costs, action, costs.seed);
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"
#include "engine/simulate/jitter.h"
#include "engine/simulate/slice_parts.h"

#include <cmath>

namespace stagecraft::engine {

// A forward of one stage and a backward of another, executed together, take as much less than their sum as the two stages' own
// pairs do. With equal stages that is the time given; without savings it is the sum.
inline TimeNs pairTime(const CostTable& costs, const Action& pair)
{
    const StageCosts& ahead = costs.stages[index(pair.stage())];
    const StageCosts& back = costs.stages[index(pair.partner.stage)];
    const TimeNs forward = partOf(costs.sliceTime, ahead.forward, pair.microbatch());
    const TimeNs backward = partOf(costs.sliceTime, pair.partner.kind == ActionKind::InputGrad ? back.inputGrad : back.backward,
                                   pair.partner.microbatch);
    const TimeNs apart = forward + backward;
    const TimeNs ownApart = ahead.forward + ahead.backward + back.forward + back.backward;
    const TimeNs ownTogether = ahead.overlap + back.overlap;
    if (ownApart == ownTogether || ownApart == 0) return apart;
    return std::llround(static_cast<double>(apart) * static_cast<double>(ownTogether) / static_cast<double>(ownApart));
}

// On a rank of factor 1. Nothing for what does not compute. The seed is that of the jitter.
inline TimeNs actionTime(const CostTable& costs, const Action& action, std::uint64_t seed)
{
    const StageCosts& stage = costs.stages[index(action.stage())];
    TimeNs time = 0;
    switch (action.kind()) {
    case ActionKind::Forward: time = stage.forward; break;
    case ActionKind::Backward: time = stage.backward; break;
    case ActionKind::InputGrad: time = stage.inputGrad; break;
    case ActionKind::WeightGrad: time = stage.weightGrad; break;
    case ActionKind::Overlap: time = pairTime(costs, action); break;
    case ActionKind::Recompute: time = stage.forward; break;
    case ActionKind::Optimizer: time = stage.optimizer; break;
    default: return 0;
    }
    if (action.kind() != ActionKind::Overlap) time = partOf(costs.sliceTime, time, action.kind() == ActionKind::Optimizer ? traces::kNoMicroBatch : action.microbatch());
    if (costs.jitter > 0)
        time = static_cast<TimeNs>(std::llround(static_cast<double>(time) * jitterFactor(costs.jitter, seed, action.work)));
    return time;
}

} // namespace stagecraft::engine
