// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_painter.h"

#include "ui/timeline/arrow_painter.h"
#include "ui/timeline/header_painter.h"
#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/lane_shapes.h"
#include "ui/timeline/ruler_painter.h"

#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr double kLeastBubbleStep = 100;      // pixels of a step, below which its bubbles are not asked for
constexpr std::size_t kMostBubbleSlices = 400'000; // of all steps whose bubbles are asked for in one frame

// The steps of a source whose bubbles are shown: those wide enough, within the frame's budget.
std::vector<traces::Step> stepsWithBubbles(const TimelineScene& scene, int source, const Segment& segment, const TimeMapping& map)
{
    std::vector<traces::Step> steps;
    std::size_t slices = 0;
    for (const StepPlace& place : scene.steps(source).all()) {
        if (place.span.begin >= segment.span.end || place.span.end <= segment.span.begin) continue;
        if (map.x(place.span.end + segment.shift) < map.left() || map.x(place.span.begin + segment.shift) > map.right()) continue;
        if (map.pixels(place.span.length()) < kLeastBubbleStep) continue;
        slices += place.slices;
        if (slices > kMostBubbleSlices) break;
        steps.push_back(place.step);
    }
    return steps;
}

void addBubbles(std::vector<Bubble>& bubbles, std::span<const traces::Gap> gaps, const Segment& segment, const TimeMapping& map,
                double leastPixels)
{
    const traces::TimeNs begin = map.time(map.left()) - segment.shift;
    const auto first = std::lower_bound(gaps.begin(), gaps.end(), begin,
                                        [](const traces::Gap& gap, traces::TimeNs t) { return gap.span.end < t; });
    for (auto gap = first; gap != gaps.end(); ++gap) {
        const double left = map.x(gap->span.begin + segment.shift);
        if (left > map.right()) break;
        const double right = map.x(gap->span.end + segment.shift);
        if (right - left >= leastPixels) bubbles.push_back({std::max(left, map.left()), std::min(right, map.right()), &*gap});
    }
}

} // namespace

struct TimelinePainter::Work {
    LaneCanvas canvas;
    LaneSweep sweep;
    LaneSweep ghostSweep;
    std::vector<Bubble> bubbles;
    SelectedEdges edges;
};

TimelinePainter::TimelinePainter(const Theme& theme, const QFont& font) : theme_(theme), font_(font), work_(std::make_unique<Work>())
{
    measureFont();
}

TimelinePainter::~TimelinePainter() = default;

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
    work_->canvas.setFont(font_);
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
    paintLanes(painter, scene, layout, view, ticks);
    paintMarks(painter, scene, layout, view);
    paintSelection(painter, scene, layout, {lanes, view.scroll, map}, view.selection, work_->edges.of(scene, view.selection), theme_);
    painter.fillRect(QRectF(view.area.left(), view.area.top(), lanes.left() - view.area.left(), lanes.top() - view.area.top()), theme_.base);
    painter.fillRect(QRectF(view.area.left(), lanes.top() - 1, lanes.left() - view.area.left(), 1), theme_.line);
    const QRectF column(view.area.left(), lanes.top(), lanes.left() - view.area.left(), lanes.height());
    paintHeaders(painter, scene, layout, {column, column.united(lanes), view.scroll, view.foldMarks}, theme_, font_);
}

void TimelinePainter::paintLanes(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout,
                                 const TimelineView& view, const TimeTicks& ticks)
{
    const QRectF lanes = lanesRect(view.area);
    const bool pixels = view.surface == Surface::Pixels;
    const double ratio = pixels ? view.deviceRatio : 1;
    const int columns = static_cast<int>(std::ceil(lanes.width() * ratio));
    // From here on everything is counted in columns.
    const TimeMapping map(view.range, 0, lanes.width() * ratio);
    std::vector<int> grid;
    for (const TimeTick& tick : ticks.ticks) grid.push_back(static_cast<int>(std::floor(map.x(tick.time))));

    std::vector<LaneStyle> styles;
    for (int source = 0; source < scene.sourceCount(); ++source) styles.emplace_back(theme_, scene.trace(source).info);
    std::optional<LaneShapes> shapes;
    if (pixels) work_->canvas.begin(QSize(columns, static_cast<int>(std::ceil(lanes.height() * ratio))), ratio, theme_, std::move(grid));
    else shapes.emplace(painter, lanes, theme_, font_, std::move(grid));

    const auto sweepLane = [&](LaneSweep& sweep, int source, traces::LaneId lane) {
        sweep.clear(columns);
        for (const Segment& segment : scene.segments(source)) {
            const traces::Interval shown = segment.shown();
            if (shown.begin <= view.range.last() && shown.end >= view.range.first())
                sweep.run(scene.trace(source).lane(lane), segment, map, styles[static_cast<std::size_t>(source)]);
        }
    };
    struct Shown { // bubbles of these steps are painted
        const Segment* segment;
        std::vector<traces::Step> steps;
    };
    std::vector<std::vector<Shown>> shownSteps(static_cast<std::size_t>(scene.sourceCount()));
    for (int source = 0; source < scene.sourceCount(); ++source)
        for (const Segment& segment : scene.segments(source)) {
            std::vector<traces::Step> steps = stepsWithBubbles(scene, source, segment, map);
            if (!steps.empty()) shownSteps[static_cast<std::size_t>(source)].push_back({&segment, std::move(steps)});
        }

    for (const Row& row : layout.rows()) {
        if (row.kind != Row::Kind::Lane || row.bottom() < view.scroll || row.y - view.scroll > lanes.height()) continue;
        const traces::Trace& trace = scene.trace(row.source);
        sweepLane(work_->sweep, row.source, row.lane);
        if (row.ghost) sweepLane(work_->ghostSweep, row.ghostSource, *row.ghost);
        work_->bubbles.clear();
        if (row.laneKind == traces::LaneKind::Compute && trace.lane(row.lane).info().depth == 0)
            for (const Shown& shown : shownSteps[static_cast<std::size_t>(row.source)])
                for (const traces::Step step : shown.steps)
                    addBubbles(work_->bubbles, scene.gaps(row.source, step).of(row.rank), *shown.segment, map, kBubblePixels * ratio);
        LanePicture picture;
        picture.trace = &trace;
        picture.lane = &trace.lane(row.lane);
        picture.style = &styles[static_cast<std::size_t>(row.source)];
        picture.sweep = &work_->sweep;
        picture.bubbles = &work_->bubbles;
        picture.ghost = row.ghost ? &work_->ghostSweep : nullptr;
        picture.top = (row.y - view.scroll) * ratio;
        picture.height = row.height * ratio;
        picture.sub = row.laneKind == traces::LaneKind::Transfer;
        if (pixels) work_->canvas.paint(picture);
        else shapes->paint(picture);
    }
    if (!pixels) return;
    // Drawn pixel by pixel: the image is given the ratio of the device, so no scaling takes place.
    const QImage& image = work_->canvas.finish();
    QImage lanesImage(image.constBits(), image.width(), image.height(), image.bytesPerLine(), image.format());
    lanesImage.setDevicePixelRatio(ratio);
    painter.drawImage(lanes.topLeft(), lanesImage);
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
