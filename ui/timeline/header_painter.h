// SPDX-License-Identifier: GPL-3.0-or-later
//
// The column left of the lanes, with the ranks and their stages, and the bands that name the sources.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/lane_layout.h"

#include <QFont>
#include <QRectF>

class QPainter;

namespace stagecraft::ui {

double headerWidthFor(const QFont& font);

// Square that folds a rank's thin lanes; `header` is the rank's part of the column.
QRectF foldMark(const QRectF& header);

struct HeaderAreas {
    QRectF column; // left of the lanes
    QRectF whole;  // column and lanes
    double scroll = 0;
    bool foldMarks = true; // a printed picture has nothing to press
};

void paintHeaders(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const HeaderAreas& areas,
                  const Theme& theme, const QFont& font);

// The name of a row below its rank's first: "offloads", "collectives", "Rank 0 (2)" of a second lane that computes.
QString rowName(const traces::LaneInfo& info);

// "stage 1", "stages 0, 4"; empty when the trace does not say.
QString stagesText(const traces::TraceInfo& info, traces::Rank rank);
// And its GPU, where it has kernels: "stage 1 · GPU 0".
QString placeText(const traces::Trace& trace, traces::Rank rank);

} // namespace stagecraft::ui
