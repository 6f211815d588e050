// SPDX-License-Identifier: GPL-3.0-or-later
//
// The strip above the lanes: the steps with their length, the phases of each (fill, steady, drain), and the ticks.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/time_ticks.h"
#include "ui/timeline/timeline_scene.h"

#include <QFont>
#include <QRectF>

class QPainter;

namespace stagecraft::ui {

// About the step at a shown moment, as rich text: its length, phases and bubble. Empty between steps.
QString rulerText(const TimelineScene& scene, traces::TimeNs shown);

double rulerHeightFor(const QFont& font);

// `map` runs over `rect`.
void paintRuler(QPainter& painter, const TimelineScene& scene, const TimeMapping& map, const TimeTicks& ticks,
                const QRectF& rect, const Theme& theme, const QFont& font);

} // namespace stagecraft::ui
