// SPDX-License-Identifier: Apache-2.0
//
// One process' end of what carries bytes between the processes of a run: MPI, TCP, or in tests a place in memory. It knows no tensors and
// no ranks' work. Between two processes, what is sent on one channel is matched with what is asked for there in that order, so a receiver
// needs no numbers to tell messages apart: a head says which bodies follow it. When they are done is in no order. One thread at a time.
//
//   const Ticket sent = port.send(1, Channel::Heads, bytes);     // the bytes stay where they are until done(sent)
//   if (const auto head = port.arriving()) ticket = port.receive(head->from, Channel::Heads, room);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stagecraft::runtime {

class MessagePort {
public:
    enum class Channel : std::uint8_t { Heads, Bodies };
    using Ticket = std::uint64_t;
    struct Arriving {
        int from = 0;
        std::size_t bytes = 0;
    };

    virtual ~MessagePort() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;

    // Neither waits.
    virtual Ticket send(int to, Channel channel, std::span<const std::byte> bytes) = 0;
    virtual Ticket receive(int from, Channel channel, std::span<std::byte> room) = 0;
    // True once, then the ticket is gone.
    virtual bool done(Ticket ticket) = 0;
    // A head that was announced and that nobody receives yet; its bytes may still be under way.
    virtual std::optional<Arriving> arriving() = 0;

    // The orderly end, once nothing is under way: waits for the others to come to it. Without it, the others are not waited for.
    virtual void finish() = 0;
};

} // namespace stagecraft::runtime
