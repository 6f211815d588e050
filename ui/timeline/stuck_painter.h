// SPDX-License-Identifier: GPL-3.0-or-later
//
// A deadlock on the timeline: behind the last block of each rank that waits for ever, what it cannot start and what it waits for,
// and a line from each to the rank that it waits for: the circle.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/arrow_painter.h"

#include <QFont>
#include <QRectF>

#include <map>

class QPainter;

namespace stagecraft::ui {

// Where each text stands: behind the rank's last block, but whole where the lanes are wide enough, with room for the lines.
std::map<traces::Rank, QRectF> stuckBoxes(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const QFont& font,
                                          int source);

void paintStuck(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const Theme& theme,
                const QFont& font);

} // namespace stagecraft::ui
