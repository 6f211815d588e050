// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the colours mean: the kinds of work that a scene has, idle time, the shades of chunks, the outlines of a simulation.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QFont>
#include <QRectF>

class QPainter;

namespace stagecraft::ui {

// In as many lines as `box` holds, from its left; entries that have no room are left out.
struct LegendOptions {
    bool criticalPath = false; // it is drawn
};
void paintLegend(QPainter& painter, const TimelineScene& scene, const QRectF& box, const Theme& theme, const QFont& font,
                 const LegendOptions& options = {});
// Of a box of this width that holds all entries.
double legendHeight(const TimelineScene& scene, double width, const QFont& font, const LegendOptions& options = {});

} // namespace stagecraft::ui
