// SPDX-License-Identifier: Apache-2.0
//
// Where all ranks meet before every step and after the last one. What belongs to the whole step (its span, its check, the preparation
// of the next) is done once, while all wait; then they go on together.
//
//   for (int step = 0; meeting.meet(rank, step, end); ++step) end = execute(step);
#pragma once

#include "engine/probe/clock.h"
#include "traces/base/ids.h"

namespace stagecraft::runtime {

class StepMeeting {
public:
    virtual ~StepMeeting() = default;
    // The rank is about to begin `step`, and has ended its last action at `end` (0 before the first). False: the run ends.
    virtual bool meet(traces::Rank rank, int step, TimeNs end) = 0;
    // Wakes all who wait; every later arrival returns false at once.
    virtual void cancel() = 0;
};

} // namespace stagecraft::runtime
