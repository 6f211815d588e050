// SPDX-License-Identifier: GPL-3.0-or-later
//
// How a timeline is seen at this moment, for a picture of it.
#pragma once

#include "ui/timeline/lane_layout.h"
#include "ui/timeline/timeline_item.h"

namespace stagecraft::ui {

struct ShownTimeline {
    int width = 0;          // of rank names and lanes together; 0: unknown
    double lanesHeight = 0; // of what is seen of the lanes; 0: all of them
    double scroll = 0;
    TimelineItem selection{};
    FoldedRanks folded{};
    bool criticalPath = false;
};

} // namespace stagecraft::ui
