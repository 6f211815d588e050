// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_painter.h"

#include "ui/timeline/arrow_painter.h"
#include "ui/timeline/header_painter.h"
#include "ui/timeline/lanes_painter.h"
#include "ui/timeline/path_painter.h"
#include "ui/timeline/ruler_painter.h"
#include "ui/timeline/stuck_painter.h"

#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
struct TimelinePainter::Work {
    LanesPainter lanes;
    SelectedEdges edges;
};

TimelinePainter::TimelinePainter(const Theme& theme, const QFont& font) : theme_(theme), font_(font), work_(std::make_unique<Work>())
{
    measureFont();
}

TimelinePainter::~TimelinePainter() = default;

void TimelinePainter::setThreads(int threads) { work_->lanes.setThreads(threads); }

void TimelinePainter::setTheme(const Theme& theme) { theme_ = theme; }

void TimelinePainter::setFont(const QFont& font)
{
    font_ = font;
    measureFont();
}

void TimelinePainter::measureFont()
{
    headerWidth_ = headerWidthFor(font_);
    rulerHeight_ = rulerHeightFor(font_);
}

QRectF TimelinePainter::lanesRect(const QRectF& area) const
{
    return area.adjusted(std::min(headerWidth_, area.width()), std::min(rulerHeight_, area.height()), 0, 0);
}

TimeMapping TimelinePainter::mapping(const TimelineView& view) const
{
    const QRectF lanes = lanesRect(view.area);
    return {view.range, lanes.left(), lanes.width()};
}

void TimelinePainter::paint(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view)
{
    const QRectF lanes = lanesRect(view.area);
    if (lanes.width() < 1 || lanes.height() < 1 || scene.empty()) {
        painter.fillRect(view.area, theme_.base);
        return;
    }
    const TimeMapping map = mapping(view);
    const TimeTicks ticks = timeTicks(map, kTickPixels);
    paintRuler(painter, scene, map, ticks, QRectF(lanes.left(), view.area.top(), lanes.width(), lanes.top() - view.area.top()), theme_, font_);
    work_->lanes.paint(painter, scene, layout, view, lanes, ticks, theme_, font_);
    paintMarks(painter, scene, layout, view);
    paintStuck(painter, scene, layout, {lanes, view.scroll, map}, theme_, font_);
    if (view.criticalPath) paintCriticalPath(painter, scene, layout, {lanes, view.scroll, map}, theme_);
    paintSelection(painter, scene, layout, {lanes, view.scroll, map}, view.selection, work_->edges.of(scene, view.selection), theme_);
    painter.fillRect(QRectF(view.area.left(), view.area.top(), lanes.left() - view.area.left(), lanes.top() - view.area.top()), theme_.base);
    painter.fillRect(QRectF(view.area.left(), lanes.top() - 1, lanes.left() - view.area.left(), 1), theme_.line);
    const QRectF column(view.area.left(), lanes.top(), lanes.left() - view.area.left(), lanes.height());
    paintHeaders(painter, scene, layout, {column, column.united(lanes), view.scroll, view.foldMarks}, theme_, font_);
}

void TimelinePainter::paintMarks(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view) const
{
    const QRectF lanes = lanesRect(view.area);
    const TimeMapping map = mapping(view);
    for (int source = 0; source < scene.sourceCount(); ++source) {
        // Pauses darken the rows of their own source only.
        double top = lanes.bottom();
        double bottom = lanes.top();
        for (const RankGroup& group : layout.groups()) {
            if (group.source != source) continue;
            top = std::min(top, lanes.top() + group.y - view.scroll);
            bottom = std::max(bottom, lanes.top() + group.bottom() - view.scroll);
        }
        if (scene.segments(source).empty() || bottom <= top) continue;
        QColor shade = theme_.pause;
        shade.setAlphaF(0.35F);
        for (const Segment& segment : scene.segments(source))
            for (const traces::Interval& pause : scene.trace(source).pauses()) {
                if (pause.end <= segment.span.begin || pause.begin >= segment.span.end) continue;
                const QRectF band = QRectF(QPointF(map.x(pause.begin + segment.shift), top), QPointF(map.x(pause.end + segment.shift), bottom)) & lanes;
                if (band.isEmpty()) continue;
                painter.fillRect(band, shade);
                const QString text = QStringLiteral("paused ") + durationText(pause.length());
                painter.setFont(font_);
                const QFontMetricsF metrics(font_);
                if (metrics.horizontalAdvance(text) + 12 > band.width() || band.height() < metrics.height() + 8) continue;
                painter.setPen(theme_.text);
                painter.drawText(QPointF(band.center().x() - metrics.horizontalAdvance(text) / 2, band.bottom() - metrics.descent() - 4), text);
            }
    }
    const int reference = scene.reference();
    if (reference < 0 || scene.segments(reference).empty()) return;
    const traces::TimeNs shift = scene.segments(reference).front().shift;
    for (const StepPlace& place : scene.steps(reference).all()) {
        const double x = std::floor(map.x(place.span.begin + shift));
        if (&place == &scene.steps(reference).all().front() || map.pixels(place.span.length()) < 24) continue;
        if (x >= lanes.left() && x < lanes.right()) painter.fillRect(QRectF(x, lanes.top(), 1, lanes.height()), theme_.mutedText);
    }
}

} // namespace stagecraft::ui
