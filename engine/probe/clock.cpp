// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/clock.h"

#include <ctime>

namespace stagecraft::runtime {

namespace {

class MonotonicClock final : public Clock {
public:
    [[nodiscard]] TimeNs now() const noexcept override
    {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return TimeNs{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }
};

} // namespace

const Clock& monotonicClock()
{
    static const MonotonicClock clock;
    return clock;
}

} // namespace stagecraft::runtime
