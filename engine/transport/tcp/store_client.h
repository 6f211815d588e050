// SPDX-License-Identifier: Apache-2.0
//
// A meeting point that c10d's TCPStore keeps, in whichever process and with either of its servers. c10d has a client of its own, but that
// reads each answer without a limit, so that a port which takes connections and says nothing would hold a rank for ever; and what it
// meets there it tells with the stack. Here nothing is waited for beyond the place's patience.
//
//   Expected<std::unique_ptr<MeetingPoint>> point = joinStore({.host = "node1", .port = 29500, .patience = 60s});
#pragma once

#include "engine/transport/tcp/meeting_point.h"

#include <memory>

namespace stagecraft::runtime {

// Tries until the store answers or the patience is over. Errors name the place, what is there and the remedy; another protocol's answer is
// one at once. `kept` lives as long as the meeting point: the store, where this process serves it.
traces::Expected<std::unique_ptr<MeetingPoint>> joinStore(const MeetingPlace& place, std::shared_ptr<void> kept = nullptr);

} // namespace stagecraft::runtime
