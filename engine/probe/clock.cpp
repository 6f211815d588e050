// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/clock.h"

#include <ctime>

namespace stagecraft::runtime {

namespace {

class SystemClock final : public Clock {
public:
    explicit SystemClock(clockid_t id) : id_(id) {}
    [[nodiscard]] TimeNs now() const noexcept override
    {
        timespec t{};
        clock_gettime(id_, &t);
        return TimeNs{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }

private:
    clockid_t id_;
};

} // namespace

const Clock& monotonicClock()
{
    static const SystemClock clock(CLOCK_MONOTONIC);
    return clock;
}

const Clock& threadCpuClock()
{
    static const SystemClock clock(CLOCK_THREAD_CPUTIME_ID);
    return clock;
}

} // namespace stagecraft::runtime
