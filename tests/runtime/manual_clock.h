// SPDX-License-Identifier: Apache-2.0
//
// A clock that a test moves. Each look adds one nanosecond, so that no two moments are equal; or so many that an emulation takes its
// time from the number of looks, and the same action as long every time.
#pragma once

#include "engine/probe/clock.h"

#include <atomic>

namespace stagecraft::runtime {

class ManualClock final : public Clock {
public:
    explicit ManualClock(TimeNs look = 1) : look_(look) {}
    [[nodiscard]] TimeNs now() const noexcept override { return time_.fetch_add(look_) + look_; }
    void advance(TimeNs by) { time_.fetch_add(by); }

private:
    const TimeNs look_;
    mutable std::atomic<TimeNs> time_{0};
};

} // namespace stagecraft::runtime
