// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the arrow keys lead from an item: along its lane, bubbles included, and to the lanes above and below. Pure.
#pragma once

#include "ui/timeline/lane_layout.h"
#include "ui/timeline/timeline_item.h"

namespace stagecraft::ui {

enum class Direction : std::int8_t { Back = -1, On = 1 };

// The block or bubble before or after `item` in its lane; none at the ends.
TimelineItem alongLane(const TimelineScene& scene, const TimelineItem& item, Direction direction);

// What lies at `shown` in the next lane above (Back) or below (On) that has anything; none where there is no such lane.
TimelineItem acrossLanes(const TimelineScene& scene, const LaneLayout& layout, const TimelineItem& item, traces::TimeNs shown,
                         Direction direction);

// The first block in sight of the first lane that has one; `left` is the view's left end.
TimelineItem firstInSight(const TimelineScene& scene, const LaneLayout& layout, traces::TimeNs left);

} // namespace stagecraft::ui
