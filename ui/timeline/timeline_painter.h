// SPDX-License-Identifier: GPL-3.0-or-later
//
// Paints a scene into any QPainter: screen, PNG, SVG and PDF alike. Lanes are painted per pixel column, from the busy time
// of each column (LaneSweep), never per slice; blocks wide enough get a shape and a label. All geometry is cut to the
// given areas here, because Qt's SVG generator ignores clipping.
//
//   +-----------+----------------------------------------+
//   |           | phases and steps, ticks                |  rulerHeight()
//   +-----------+----------------------------------------+
//   | rank 0    | ####  ####  ....  ####                 |
//   +-----------+----------------------------------------+
//    headerWidth()
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/lane_layout.h"
#include "ui/timeline/time_ticks.h"
#include "ui/timeline/timeline_item.h"
#include "ui/timeline/timeline_scene.h"

#include <QFont>
#include <QRectF>

#include <memory>

class QPainter;

namespace stagecraft::ui {

inline constexpr double kTickPixels = 90; // least distance of two ticks, here and in the plots below

enum class Surface : std::uint8_t {
    Pixels, // a raster device: lanes are composed as one image
    Vector, // SVG, PDF: lanes are rectangles
};

struct TimelineView {
    QRectF area;       // where to paint, ruler and headers included
    TimeRange range;   // visible, shown time
    double scroll = 0; // of the lanes, downwards
    TimelineItem selection{};
    bool criticalPath = false; // drawn over the lanes
    bool foldMarks = true;
    Surface surface = Surface::Pixels;
    double deviceRatio = 1; // pixels per unit, for Pixels
};

class TimelinePainter {
public:
    TimelinePainter(const Theme& theme, const QFont& font);
    ~TimelinePainter();
    TimelinePainter(const TimelinePainter&) = delete;
    TimelinePainter& operator=(const TimelinePainter&) = delete;

    void setTheme(const Theme& theme);
    void setFont(const QFont& font);
    void setThreads(int threads); // that lanes are painted with, at most; from the start one per core
    [[nodiscard]] const Theme& theme() const { return theme_; }
    [[nodiscard]] const QFont& font() const { return font_; }

    [[nodiscard]] double headerWidth() const { return headerWidth_; }
    [[nodiscard]] double rulerHeight() const { return rulerHeight_; }
    [[nodiscard]] QRectF lanesRect(const QRectF& area) const; // below the ruler, right of the headers
    [[nodiscard]] TimeMapping mapping(const TimelineView& view) const;

    // The scene is not changed; its step analyses may be worked out on the way.
    void paint(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view);

private:
    struct Work; // buffers kept between frames

    void measureFont();
    void paintMarks(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view) const;

    Theme theme_;
    QFont font_;
    double headerWidth_ = 0;
    double rulerHeight_ = 0;
    std::unique_ptr<Work> work_;
};

} // namespace stagecraft::ui
