// SPDX-License-Identifier: Apache-2.0
//
// Activations that go to the host for a while: any schedule with OFFLOAD and RELOAD actions added, after PipeOffload (arXiv
// 2503.01328). Half of the activations can nearly always go without a loss of time, and it pays to let those go that live longest:
// they leave the memory for the longest part of the step.
//
//   withOffload(generate({.name = "1f1b"}).value(), 0.5)
//
// On every rank the given share of the activations goes away, rounded down: first those that bring down the most that the rank ever
// holds as far as so many can, then those that wait longest from the end of their forward to the begin of their backward, where F, I
// and W take a slot each and transfers none. With 1F1B these are spread over the micro-batches in flight, so that a share s away
// leaves about 1-s of them, and the two that are just made and just needed. An OFFLOAD stands right after its forward. A RELOAD
// stands before the action that precedes the backward, so that the copy runs beside it. What has no action between the two for
// either copy stays where it is.
#pragma once

#include "engine/schedule/schedule.h"

#include <string_view>

namespace stagecraft::engine {

// 0 <= share <= 1; 0 gives the schedule as it is. An error where the schedule moves activations already, has no
// backwards, or cannot be executed.
Expected<Schedule> withOffload(Schedule schedule, double share);

// OFFLOAD and RELOAD: copies beside the computing.
constexpr bool isCopy(ActionKind kind) { return kind == ActionKind::Offload || kind == ActionKind::Reload; }

// Has it such actions?
[[nodiscard]] bool hasOffload(const Schedule& schedule);

// What a rank's copy lanes are called, by their depth in a trace: "offloads", "reloads", and of what it keeps for another rank "keeps",
// "gives back".
[[nodiscard]] std::string_view copyLaneText(int depth);

} // namespace stagecraft::engine
