// SPDX-License-Identifier: Apache-2.0
//
// Was the machine busy with something else while actions were timed? An emulated action runs alone and computes all the
// time: what it takes longer than its thread computed went to other programs, and is noise in everything that follows.
//
//   BusyWatch watch;
//   watch.add({.taken = 1'200'000, .computed = 1'000'000});
//   if (watch.noisy()) tell(watch.excess());
#pragma once

#include "traces/base/units.h"

namespace stagecraft::runtime {

class BusyWatch {
public:
    // Predictions from measured costs are off by a few hundredths, and a scheduler's ticks and interrupts cost about one: a
    // tenth drowns the first and does not come from the second. A program that shares the core all the time makes it 1.
    static constexpr double kClearExcess = 0.1;

    struct Timing {
        traces::TimeNs taken = 0;    // by the clock
        traces::TimeNs computed = 0; // of the thread, over at least the same span
    };
    void add(const Timing& timing)
    {
        taken_ += timing.taken;
        computed_ += timing.computed;
    }
    // Taken in relation to computed, minus one; 0 before anything was added.
    [[nodiscard]] double excess() const
    {
        return computed_ > 0 ? static_cast<double>(taken_) / static_cast<double>(computed_) - 1 : 0;
    }
    [[nodiscard]] bool noisy() const { return excess() > kClearExcess; }

private:
    traces::TimeNs taken_ = 0;
    traces::TimeNs computed_ = 0;
};

} // namespace stagecraft::runtime
