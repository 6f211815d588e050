// SPDX-License-Identifier: Apache-2.0
//
// A clock that can stand: what a run does not do because it was paused, or a stage held, is no hang.
//
//   StandingClock clock(monotonicClock());
//   clock.tick(control.paused());          // one thread, again and again
//   clock.now();                           // any thread: without the time between two ticks of which the second said that it stands
#pragma once

#include "engine/probe/clock.h"

#include <atomic>

namespace stagecraft::runtime {

class StandingClock final : public Clock {
public:
    explicit StandingClock(const Clock& clock) : clock_(clock), last_(clock.now()) {}
    [[nodiscard]] TimeNs now() const noexcept override { return clock_.now() - stood_.load(); }
    void tick(bool stands)
    {
        const TimeNs at = clock_.now();
        if (stands) stood_.fetch_add(at - last_);
        last_ = at;
    }

private:
    const Clock& clock_;
    TimeNs last_; // of the one thread
    std::atomic<TimeNs> stood_{0};
};

} // namespace stagecraft::runtime
