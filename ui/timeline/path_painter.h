// SPDX-License-Identifier: GPL-3.0-or-later
//
// The critical path over the lanes: a line along the foot of every block that is on it, and from row to row where data goes on to
// another rank; dashed where the path waits. Of the steps in sight that are wide enough to tell anything.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/arrow_painter.h"

class QPainter;

namespace stagecraft::ui {

void paintCriticalPath(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const Theme& theme);

} // namespace stagecraft::ui
