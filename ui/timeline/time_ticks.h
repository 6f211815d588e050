// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ticks at round times, with labels that can be told apart however close the view is: where a label would need many
// digits, all of them count from a common base.
//
//   TimeTicks ticks = timeTicks(map, 90);    // at least 90 pixels between two
//   ticks.base == "12.3456 ms"               // empty: labels count from 0
#pragma once

#include "ui/timeline/time_mapping.h"

#include <QString>

#include <vector>

namespace stagecraft::ui {

struct TimeTick {
    traces::TimeNs time = 0;
    QString label;
};

struct TimeTicks {
    traces::TimeNs step = 1;
    QString base;
    std::vector<TimeTick> ticks;
};

TimeTicks timeTicks(const TimeMapping& map, double leastPixels);

// As traces::formatDuration, with a real micro sign.
QString durationText(traces::TimeNs ns);

} // namespace stagecraft::ui
