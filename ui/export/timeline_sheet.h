// SPDX-License-Identifier: GPL-3.0-or-later
//
// The page that an export draws: title, ruler and lanes, legend, figures. Paints into any QPainter.
#pragma once

#include "ui/export/timeline_export.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/timeline/timeline_scene.h"

#include <QSizeF>

class QPainter;

namespace stagecraft::ui {

class TimelineSheet {
public:
    TimelineSheet(const std::vector<TraceSource>& sources, const ExportOptions& options);

    [[nodiscard]] bool empty() const { return scene_.empty(); }
    [[nodiscard]] QSizeF size() const { return size_; }
    // Whether the step and the times that are asked for are in the trace.
    [[nodiscard]] traces::Expected<void> checkRange() const;
    [[nodiscard]] QString title() const;
    void paint(QPainter& painter, Surface surface, double deviceRatio);

private:
    [[nodiscard]] QString subtitle() const;
    [[nodiscard]] QString figuresLine() const;
    [[nodiscard]] double figuresHeight() const;
    void paintTable(QPainter& painter, double top) const;
    [[nodiscard]] TimeRange range() const;
    // The finished step that the figures tell: the one asked for, else the one of median length among those in sight.
    [[nodiscard]] const StepPlace* toldStep() const;
    [[nodiscard]] traces::TimeNs shift() const;

    ExportOptions options_;
    TimelineScene scene_;
    QFont font_;
    TimelinePainter painter_;
    LaneLayout layout_;
    QSizeF size_;
};

} // namespace stagecraft::ui
