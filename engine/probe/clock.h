// SPDX-License-Identifier: Apache-2.0
//
// The clock that a run reads. The engine takes it by reference, so that tests hand in their own.
//
//   TimeNs begin = monotonicClock().now();
#pragma once

#include "traces/base/units.h"

namespace stagecraft::runtime {

using traces::TimeNs;

class Clock {
public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual TimeNs now() const noexcept = 0; // any thread; never goes back
};

// CLOCK_MONOTONIC, raw: the clock that device records can be put on as well.
const Clock& monotonicClock();
// What the calling thread has computed so far; stands still while others have its core.
const Clock& threadCpuClock();

} // namespace stagecraft::runtime
