// SPDX-License-Identifier: GPL-3.0-or-later
//
// A plot as PNG, SVG or PDF, and the curves of a sweep as such a picture. GUI thread; errors name the file.
//
//   exportSweep(sweep, {.figures = mainFigures(sweep)}, "bubble.svg");
#pragma once

#include "engine/explain/sweep_figures.h"
#include "traces/base/expected.h"
#include "ui/theme/theme.h"

#include <QSize>
#include <QString>

#include <vector>

class QCustomPlot;

namespace stagecraft::ui {

struct PlotExportOptions {
    QSize size{1200, 820}; // in units of the picture: pixels at scale 1
    double scale = 2;      // PNG: pixels per unit
    QString title{};       // of the file's own description
};

traces::Expected<void> exportPlot(QCustomPlot& plot, const PlotExportOptions& options, const QString& file);

struct SweepPicture {
    std::vector<engine::SweepFigure> figures{}; // empty: mainFigures()
    Theme theme = Theme::of(ThemeKind::Light);
    int width = 1200;
};

// "Bubble of the makespan against micro-batches m, p=4"
QString sweepTitle(const engine::Sweep& sweep, const std::vector<engine::SweepFigure>& figures);

traces::Expected<void> exportSweep(const engine::Sweep& sweep, const SweepPicture& picture, const QString& file);

} // namespace stagecraft::ui
