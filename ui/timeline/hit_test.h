// SPDX-License-Identifier: GPL-3.0-or-later
//
// What lies at a point of the timeline. Pure: no widget.
#pragma once

#include "ui/timeline/arrow_painter.h"
#include "ui/timeline/lane_layout.h"
#include "ui/timeline/timeline_item.h"

#include <QPointF>

namespace stagecraft::ui {

// Slices are hit from this many pixels beside them too, so that thin ones can be pointed at.
inline constexpr double kHitTolerance = 2;

// `pos` and `areas` in the same coordinates. A gap where a rank idles within a step, none outside every lane.
TimelineItem itemAt(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, QPointF pos);

} // namespace stagecraft::ui
