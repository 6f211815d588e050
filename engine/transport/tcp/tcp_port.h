// SPDX-License-Identifier: Apache-2.0
//
// Messages over TCP, one connection between each two processes, on one host or many. Nothing but a meeting point has to be known
// beforehand: there each leaves where it listens.
//
//   rank 2                                   rank 0, 1
//   listens, puts "address/2"
//   finds "address/0", connects  ----->      who are you?     the word of the address, and a rank
//                                <-----      welcome          the word
//                                ----->      taken            this connection, of those that were tried
//
// A message is a head of 16 bytes (what it is, how long) and its bytes. Of one sender all come in the order in which they were sent, bodies
// behind the head that tells of them: so bodies wait in the connection until they are asked for, and go from there to where they belong.
// An end that closes its connection without a goodbye has died: every call then throws, with the rank.
//
//   Expected<std::unique_ptr<MessagePort>> port = openTcpPort(std::move(point), {.rank = 0, .size = 2, .patience = 60s});
#pragma once

#include "engine/transport/message_port.h"
#include "engine/transport/tcp/meeting_point.h"

#include <chrono>
#include <memory>

namespace stagecraft::runtime {

struct TcpMember {
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds patience{60'000}; // until all are connected
};

// Waits for all. Errors: one does not come or cannot be reached, two have one rank, they are not told the same number. The meeting point is
// kept as long as the port: the others may still read there.
traces::Expected<std::unique_ptr<MessagePort>> openTcpPort(std::shared_ptr<MeetingPoint> point, const TcpMember& self);

} // namespace stagecraft::runtime
