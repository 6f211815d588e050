// SPDX-License-Identifier: Apache-2.0
//
// What a computing action takes from a neighbouring stage and what it gives to one, as boxes of the hand-off: an activation goes to
// the next stage, its gradient comes back. Each direction of two counts its own stages and micro-batches. Private to the runtime.
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

} // namespace stagecraft::runtime
