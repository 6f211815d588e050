// SPDX-License-Identifier: Apache-2.0
//
// What a computing action gives to another rank, and what it takes from one: the transfers that every lowering places.
//
//   if (std::optional<Handoff> out = outputOf(schedule, work)) list.push_back(out->send);
#pragma once

#include "engine/schedule/schedule.h"

#include <optional>

namespace stagecraft::engine {

constexpr bool sends(ActionKind kind) { return kind == ActionKind::SendForward || kind == ActionKind::SendBackward; }
constexpr bool isBackward(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::InputGrad; } // gives a gradient
constexpr bool receives(ActionKind kind) { return kind == ActionKind::RecvForward || kind == ActionKind::RecvBackward; }

// The forward or backward whose outcome a SEND or RECV hands over.
traces::Work handedOver(const traces::Work& transfer);

struct Handoff {
    Action send;
    Action recv;
    Rank from{};
    Rank to{};
};

// The transfer of what a forward or backward made; nothing at the end of the pipeline, for other kinds, and where the neighbour is on
// the same rank.
std::optional<Handoff> outputOf(const Schedule& schedule, const traces::Work& work);
// The transfer of what it needs, in the same way.
std::optional<Handoff> inputOf(const Schedule& schedule, const traces::Work& work);

} // namespace stagecraft::engine
