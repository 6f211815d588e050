// SPDX-License-Identifier: GPL-3.0-or-later
//
// Paints the lanes of a timeline. Onto pixels it does so in bands, one per core: each band is an image of its own, composed
// by its own LaneCanvas from what is in sight of it, so that the threads share nothing that any of them changes.
#pragma once

#include "ui/timeline/timeline_painter.h"

#include <QThreadPool>

#include <memory>
#include <vector>

namespace stagecraft::ui {

class LanesPainter {
public:
    LanesPainter();
    ~LanesPainter();
    LanesPainter(const LanesPainter&) = delete;
    LanesPainter& operator=(const LanesPainter&) = delete;

    // At most so many threads, the caller's among them; from the start one per core.
    void setThreads(int threads);

    void paint(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view, const QRectF& lanes,
               const TimeTicks& ticks, const Theme& theme, const QFont& font);

private:
    struct Band; // buffers kept between frames
    struct Frame;

    std::vector<std::unique_ptr<Band>> bands_;
    QThreadPool pool_;
};

} // namespace stagecraft::ui
