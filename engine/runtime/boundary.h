// SPDX-License-Identifier: Apache-2.0
//
// What a computing action takes from a neighbouring stage and what it gives to one, as boxes of the hand-off: an activation goes to
// the next stage, its gradient comes back. Each direction of two counts its own stages and micro-batches. And the boxes in which copies
// of the weights exchange their gradients. Private to the runtime.
//
//   if (const std::optional<BoxAddress> box = inputBox(work, stages)) input = handoff.take(*box);
#pragma once

#include "engine/schedule/handoff.h"
#include "engine/transport/handoff.h"
#include "traces/base/action.h"

#include <optional>

namespace stagecraft::runtime {

using engine::isBackward;

constexpr std::optional<BoxAddress> inputBox(const traces::Work& work, int stages)
{
    if (work.kind == traces::ActionKind::Forward && work.stage.value > 0)
        return BoxAddress{Direction::Forward, work.stage, work.microbatch, work.flow};
    if (isBackward(work.kind) && work.stage.value + 1 < stages)
        return BoxAddress{Direction::Backward, work.stage, work.microbatch, work.flow};
    return std::nullopt;
}

constexpr std::optional<BoxAddress> outputBox(const traces::Work& work, int stages)
{
    if (work.kind == traces::ActionKind::Forward && work.stage.value + 1 < stages)
        return BoxAddress{Direction::Forward, traces::Stage{work.stage.value + 1}, work.microbatch, work.flow};
    if (isBackward(work.kind) && work.stage.value > 0)
        return BoxAddress{Direction::Backward, traces::Stage{work.stage.value - 1}, work.microbatch, work.flow};
    return std::nullopt;
}

// Where the gradients of a copy of the weights arrive at another copy: from the same stage in the other direction, which is Forward, or
// from the stage at the other end of a tied table, which is Backward. Receiver and direction are those of the copy that takes them.
constexpr BoxAddress gradientBox(const traces::Work& to, const traces::Work& from)
{
    return {to.stage == from.stage ? Direction::Forward : Direction::Backward, to.stage, traces::MicroBatch{0}, to.flow};
}

} // namespace stagecraft::runtime
