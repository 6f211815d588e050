// SPDX-License-Identifier: Apache-2.0
//
// Hand-off of tensors between stages: a box for every boundary tensor of a step, addressed by what it is (an activation goes forward, a
// gradient backward), receiving stage, micro-batch or slice, and which of two pipelines in opposite directions. Each box is filled once
// and emptied once a step. What a kind of hand-off promises: nobody ever waits to put, so no schedule can deadlock that is legal; and
// boxes may be taken in any order.
//
//   handoff.put({Direction::Forward, Stage{1}, i}, std::move(y), clock);           // sender's thread
//   std::optional<Arrival<T>> x = handoff.take({Direction::Forward, Stage{1}, i}); // receiver's; none when cancelled
#pragma once

#include "engine/probe/clock.h"
#include "traces/base/action.h"

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
    // Returns the moment from which the receiver has it, as far as the sender can tell.
    virtual TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) = 0;
    // Waits. No value once cancelled.
    virtual std::optional<Arrival<Payload>> take(const BoxAddress& address) = 0;
    // Whether take() would not wait.
    [[nodiscard]] virtual bool full(const BoxAddress& address) = 0;
    // Wakes every receiver; all later take() calls return nothing. What lies in boxes stays until destruction.
    virtual void cancel() = 0;
};

} // namespace stagecraft::runtime
