// SPDX-License-Identifier: Apache-2.0
//
// Hand-off of tensors between stages: a box for every boundary tensor of a step, addressed by what it is (an activation goes forward, a
// gradient backward), receiving stage, micro-batch or slice, and which of two pipelines in opposite directions. Each box is filled once
// and emptied once a step, in any order. Kinds of hand-off differ in how one waits, and whether the sender may have to: where nobody
// ever waits to put, no schedule can deadlock that is legal.
//
//   handoff.put({Direction::Forward, Stage{1}, i}, std::move(y), clock);           // sender's thread
//   std::optional<Arrival<T>> x = handoff.take({Direction::Forward, Stage{1}, i}); // receiver's; none when cancelled
#pragma once

#include "engine/probe/clock.h"
#include "traces/base/action.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace stagecraft::runtime {

enum class Direction : std::uint8_t { Forward, Backward };

struct BoxAddress {
    Direction direction = Direction::Forward;
    traces::Stage receiver{};
    traces::MicroBatch microbatch{};
    traces::Flow flow = traces::Flow::Single;
    auto operator<=>(const BoxAddress&) const = default;
};

template <class Payload>
struct Arrival {
    Payload payload{};
    TimeNs available = 0; // when the receiver could have taken it
};

// Any thread may put; a box has one sender and one receiver, which may be the same thread.
template <class Payload>
class Handoff {
public:
    virtual ~Handoff() = default;
    // Returns the moment from which the receiver has it, as far as the sender can tell. Nothing is handed over once cancelled.
    virtual TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) = 0;
    // Waits. No value once cancelled.
    virtual std::optional<Arrival<Payload>> take(const BoxAddress& address) = 0;
    // Whether take() would not wait.
    [[nodiscard]] virtual bool full(const BoxAddress& address) = 0;
    // Whether put() would not wait; the sender's thread asks.
    [[nodiscard]] virtual bool hasRoom(const BoxAddress&) { return true; }
    // Whether put() may have to wait at all: then only the rank's own thread puts.
    [[nodiscard]] virtual bool bounded() const { return false; }
    // Of one that keeps to an order that all ranks share: the rank has asked for so many actions of its step; 0: it begins.
    virtual void passed(std::size_t /*actions*/) {}
    // After the last one: waits until the receivers have what was put, as far as putting has not waited for that.
    virtual void settle() {}
    // Wakes everyone; all later take() calls return nothing. What lies in boxes stays until destruction.
    virtual void cancel() = 0;
};

} // namespace stagecraft::runtime
