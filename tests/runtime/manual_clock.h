// SPDX-License-Identifier: Apache-2.0
//
// A clock that a test moves. Each look adds one nanosecond, so that no two moments are equal.
#pragma once

#include "engine/probe/clock.h"

#include <atomic>

namespace stagecraft::runtime {

class ManualClock final : public Clock {
public:
    [[nodiscard]] TimeNs now() const noexcept override { return time_.fetch_add(1) + 1; }
    void advance(TimeNs by) { time_.fetch_add(by); }

private:
    mutable std::atomic<TimeNs> time_{0};
};

} // namespace stagecraft::runtime
