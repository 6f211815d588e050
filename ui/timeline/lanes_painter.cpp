// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lanes_painter.h"

#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/lane_shapes.h"

#include "traces/analysis/stream_lanes.h"

#include <QPainter>
#include <QThread>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

namespace stagecraft::ui {
namespace {

constexpr double kLeastBubbleStep = 100;      // pixels of a step, below which its bubbles are not asked for

// The steps of a source whose bubbles are shown: those wide enough.
std::vector<traces::Step> stepsWithBubbles(const TimelineScene& scene, int source, const Segment& segment, const TimeMapping& map)
{
    std::vector<traces::Step> steps;
    for (const StepPlace& place : scene.steps(source).all()) {
        if (place.span.begin >= segment.span.end || place.span.end <= segment.span.begin) continue;
        if (map.x(place.span.end + segment.shift) < map.left() || map.x(place.span.begin + segment.shift) > map.right()) continue;
        if (map.pixels(place.span.length()) < kLeastBubbleStep) continue;
        steps.push_back(place.step);
    }
    return steps;
}

void addBubbles(std::vector<Bubble>& bubbles, const GapTable& gaps, traces::Rank rank, const Segment& segment, const TimeMapping& map,
                double leastPixels)
{
    const traces::Interval seen{map.time(map.left()) - segment.shift, map.time(map.right()) + 1 - segment.shift};
    const auto least = static_cast<traces::TimeNs>(leastPixels * map.nsPerPixel());
    gaps.forEachWide(rank, seen, least, [&](const traces::Gap& gap) {
        const double left = map.x(gap.span.begin + segment.shift);
        const double right = map.x(gap.span.end + segment.shift);
        if (left <= map.right() && right - left >= leastPixels) bubbles.push_back({.left = std::max(left, map.left()), .right = std::min(right, map.right()), .gap = &gap, .length = gap.span.length()});
    });
}

void addStreamGaps(std::vector<Bubble>& bubbles, const traces::Trace& trace, const traces::Lane& lane, const LaneSweep& sweep, const TimeMapping& map,
                   double leastPixels)
{
    for (const SweepBlock& each : sweep.blocks())
        if (each.right - each.left >= leastPixels)
            bubbles.push_back({.left = std::max(each.left, map.left()), .right = std::min(each.right, map.right()), .cause = &trace.text(lane.text(each.slice)),
                               .length = lane.end(each.slice) - lane.begin(each.slice)});
}

// What NCCL's kernels wait in lies over them, from their begin on.
void addWaits(std::vector<Bubble>& bubbles, const std::vector<traces::ExchangeKernel>& exchanges, const Row& row, const traces::Lane& lane, const LaneSweep& sweep,
              const TimeMapping& map, double leastPixels)
{
    for (const SweepBlock& each : sweep.blocks()) {
        const traces::SliceRef kernel{row.lane, each.slice};
        const traces::ExchangeKernel* known = traces::findExchange(exchanges, kernel);
        if (known == nullptr || !known->met || !known->peer) continue;
        const traces::TimeNs length = *known->met - lane.begin(each.slice);
        const double right = each.left + map.pixels(length);
        if (right - each.left < leastPixels || each.left > map.right()) continue;
        bubbles.push_back({.left = std::max(each.left, map.left()), .right = std::min(right, map.right()), .waitsFor = known->peer, .length = length});
    }
}

constexpr int kLeastBandRows = 4; // fewer are painted faster than a thread wakes up

// Steps of one source's segment whose bubbles are painted.
struct Shown {
    const Segment* segment = nullptr;
    std::vector<const GapTable*> gaps;
    std::vector<const std::vector<traces::ExchangeKernel>*> exchanges; // of those steps, where kernels of NCCL are shown
};

struct Edges {
    double top = 0;
    double bottom = 0;
};

} // namespace

// What all bands of a frame look at and none changes.
struct LanesPainter::Frame {
    const TimelineScene& scene;
    const TimelineView& view;
    double ratio;     // columns per unit
    int columns;
    TimeMapping map;  // over the columns
    std::vector<int> grid;
    std::vector<LaneStyle> styles;         // by source
    std::vector<std::vector<Shown>> shown; // by source
    std::vector<const Row*> rows;          // in sight
};

struct LanesPainter::Band {
    LaneCanvas canvas;
    LaneSweep sweep;
    LaneSweep ghostSweep;
    LaneSweep gapSweep;
    std::vector<Bubble> bubbles;

    void sweepLane(LaneSweep& into, const Frame& frame, int source, traces::LaneId lane) const
    {
        into.clear(frame.columns);
        for (const Segment& segment : frame.scene.segments(source)) {
            const traces::Interval shown = segment.shown();
            if (shown.begin <= frame.view.range.last() && shown.end >= frame.view.range.first())
                into.run(frame.scene.trace(source).lane(lane), segment, frame.map, frame.styles[static_cast<std::size_t>(source)]);
        }
    }

    // `place` says where a row lies: its upper and its lower edge.
    template <typename Target>
    void paint(const Frame& frame, std::span<const Row* const> rows, Target& target, const std::function<Edges(const Row&)>& place)
    {
        for (const Row* row : rows) {
            const traces::Trace& trace = frame.scene.trace(row->source);
            sweepLane(sweep, frame, row->source, row->lane);
            if (row->ghost) sweepLane(ghostSweep, frame, row->ghostSource, *row->ghost);
            bubbles.clear();
            if (row->laneKind == traces::LaneKind::Compute && trace.lane(row->lane).info().depth == 0)
                for (const Shown& shown : frame.shown[static_cast<std::size_t>(row->source)])
                    for (const GapTable* gaps : shown.gaps)
                        addBubbles(bubbles, *gaps, row->rank, *shown.segment, frame.map, kBubblePixels * frame.ratio);
            if (row->gaps) {
                sweepLane(gapSweep, frame, row->source, *row->gaps);
                addStreamGaps(bubbles, trace, trace.lane(*row->gaps), gapSweep, frame.map, kBubblePixels * frame.ratio);
            }
            if (holdsNccl(trace.lane(row->lane).info()))
                for (const Shown& shown : frame.shown[static_cast<std::size_t>(row->source)])
                    for (const auto* exchanges : shown.exchanges)
                        addWaits(bubbles, *exchanges, *row, trace.lane(row->lane), sweep, frame.map, kBubblePixels * frame.ratio);
            LanePicture picture;
            picture.trace = &trace;
            picture.lane = &trace.lane(row->lane);
            picture.style = &frame.styles[static_cast<std::size_t>(row->source)];
            picture.sweep = &sweep;
            picture.bubbles = &bubbles;
            picture.ghost = row->ghost ? &ghostSweep : nullptr;
            const Edges edges = place(*row);
            picture.top = edges.top;
            picture.height = edges.bottom - edges.top;
            picture.sub = row->laneKind == traces::LaneKind::Transfer;
            target.paint(picture);
        }
    }
};

LanesPainter::LanesPainter()
{
    setThreads(QThread::idealThreadCount());
    pool_.setExpiryTimeout(-1); // a thread knows the fonts that it has used
}

LanesPainter::~LanesPainter() = default;

void LanesPainter::setThreads(int threads)
{
    bands_.resize(static_cast<std::size_t>(std::max(1, threads)));
    for (auto& band : bands_)
        if (!band) band = std::make_unique<Band>();
    pool_.setMaxThreadCount(std::max(1, static_cast<int>(bands_.size()) - 1));
}

void LanesPainter::paint(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const TimelineView& view,
                         const QRectF& lanes, const TimeTicks& ticks, const Theme& theme, const QFont& font)
{
    const bool pixels = view.surface == Surface::Pixels;
    const double ratio = pixels ? view.deviceRatio : 1;
    // From here on everything is counted in columns.
    Frame frame{scene, view, ratio, static_cast<int>(std::ceil(lanes.width() * ratio)),
                TimeMapping(view.range, 0, lanes.width() * ratio), {}, {}, {}, {}};
    for (const TimeTick& tick : ticks.ticks) frame.grid.push_back(static_cast<int>(std::floor(frame.map.x(tick.time))));
    for (int source = 0; source < scene.sourceCount(); ++source) {
        frame.styles.emplace_back(theme, scene.trace(source).info);
        std::vector<Shown>& shown = frame.shown.emplace_back();
        const std::vector<traces::Lane>& all = scene.trace(source).lanes();
        const bool exchanges = std::any_of(all.begin(), all.end(), [](const traces::Lane& lane) { return holdsNccl(lane.info()); });
        for (const Segment& segment : scene.segments(source)) {
            Shown each{&segment, {}, {}};
            for (const traces::Step step : stepsWithBubbles(scene, source, segment, frame.map)) {
                each.gaps.push_back(&scene.gaps(source, step));
                if (exchanges) each.exchanges.push_back(&scene.insight(source, step).exchanges);
            }
            if (!each.gaps.empty()) shown.push_back(std::move(each));
        }
    }
    for (const Row& row : layout.rows())
        if (row.kind == Row::Kind::Lane && row.bottom() >= view.scroll && row.y - view.scroll <= lanes.height()) frame.rows.push_back(&row);

    if (!pixels) {
        LaneShapes shapes(painter, lanes, theme, font, std::move(frame.grid));
        bands_.front()->paint(frame, frame.rows, shapes,
                              [&](const Row& row) { return Edges{row.y - view.scroll, row.bottom() - view.scroll}; });
        return;
    }
    const auto line = [&](double y) { return static_cast<int>(std::lround((y - view.scroll) * ratio)); };
    const std::size_t count = std::clamp<std::size_t>(frame.rows.size() / kLeastBandRows, 1, bands_.size());
    const int height = static_cast<int>(std::ceil(lanes.height() * ratio));
    // A band begins where its first row does, and goes on to where the next one begins.
    struct Part {
        std::span<const Row* const> rows;
        int top = 0;
        int bottom = 0;
    };
    std::vector<Part> parts(count);
    for (std::size_t b = 0; b < count; ++b) {
        const std::size_t first = frame.rows.size() * b / count;
        parts[b].rows = std::span(frame.rows).subspan(first, frame.rows.size() * (b + 1) / count - first);
        parts[b].bottom = height;
        if (b == 0) continue;
        parts[b].top = std::clamp(line(frame.rows[first]->y), 0, height);
        parts[b - 1].bottom = parts[b].top;
    }
    const auto compose = [&](std::size_t b) {
        const Part& part = parts[b];
        LaneCanvas& canvas = bands_[b]->canvas;
        canvas.setFont(font);
        canvas.begin(QSize(frame.columns, part.bottom - part.top), part.top, ratio, theme, frame.grid);
        bands_[b]->paint(frame, part.rows, canvas, [&](const Row& row) {
            return Edges{static_cast<double>(line(row.y) - part.top), static_cast<double>(line(row.bottom()) - part.top)};
        });
        canvas.finish();
    };
    for (std::size_t b = 1; b < count; ++b) pool_.start([&compose, b] { compose(b); });
    compose(0);
    pool_.waitForDone();
    for (std::size_t b = 0; b < count; ++b) {
        // Drawn pixel by pixel: the image is given the ratio of the device, so no scaling takes place.
        const QImage& image = bands_[b]->canvas.finish();
        if (image.isNull()) continue;
        QImage band(image.constBits(), image.width(), image.height(), image.bytesPerLine(), image.format());
        band.setDevicePixelRatio(ratio);
        painter.drawImage(lanes.topLeft() + QPointF(0, parts[b].top / ratio), band);
    }
}

} // namespace stagecraft::ui
