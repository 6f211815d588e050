// SPDX-License-Identifier: GPL-3.0-or-later
//
// How long the timeline takes to paint, at 1920 x 1000 pixels: pan and zoom over many slices, and from a changed control
// to the drawn picture. Prints median and 99th percentile of the frames, as a clock on the wall shows them: leave the
// machine alone meanwhile, as lanes are painted on every core.
//
//   QT_QPA_PLATFORM=offscreen timeline_bench [slices, default 10000000] [lanes, default 64]
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/timeline/timeline_scene.h"

#include <QApplication>
#include <QImage>
#include <QPainter>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace {

using namespace stagecraft;
using traces::ActionKind;
using traces::TimeNs;

constexpr QSize kPixels(1920, 1000);

class Stopwatch {
public:
    [[nodiscard]] double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Blocks of random length with random pauses between: no two lanes alike, nothing for a cache to hold on to.
std::shared_ptr<traces::Trace> randomTrace(std::size_t slices, int lanes)
{
    constexpr std::array kKinds{ActionKind::Forward, ActionKind::Backward, ActionKind::InputGrad, ActionKind::WeightGrad};
    auto trace = std::make_shared<traces::Trace>();
    std::mt19937 random(1);
    for (int rank = 0; rank < lanes; ++rank) {
        const traces::LaneId lane = trace->addLane({.rank = traces::Rank{rank}, .kind = traces::LaneKind::Compute, .name = {}});
        TimeNs t = 0;
        for (std::size_t i = 0; i < slices / static_cast<std::size_t>(lanes); ++i) {
            t += random() % 2000;
            const TimeNs end = t + 500 + random() % 8000;
            traces::Slice slice;
            slice.begin = t;
            slice.end = end;
            slice.action = traces::makeAction(kKinds[random() % kKinds.size()], traces::Stage{rank}, traces::MicroBatch{i % 1000});
            trace->append(lane, slice);
            t = end;
        }
    }
    return trace;
}

void report(const char* what, std::vector<double>& ms)
{
    std::sort(ms.begin(), ms.end());
    const auto at = [&](double share) { return ms[std::min(ms.size() - 1, static_cast<std::size_t>(share * static_cast<double>(ms.size())))]; };
    std::printf("%-46s median %6.2f ms   p99 %6.2f ms   max %6.2f ms   (%zu frames)\n", what, at(0.5), at(0.99), ms.back(), ms.size());
}

class Frames {
public:
    explicit Frames(ui::TimelineScene& scene)
        : scene_(scene), painter_(ui::Theme::of(ui::ThemeKind::Light), QApplication::font()), image_(kPixels, QImage::Format_RGB32)
    {
        layout();
    }

    void layout()
    {
        const double height = kPixels.height() - painter_.rulerHeight();
        ui::LayoutOptions options;
        options.fitHeight = height;
        layout_ = ui::LaneLayout(scene_, options);
        if (layout_.height() <= height) return;
        options.leastCompute = 10; // as many lanes as possible on the screen, which is the hardest case
        options.rankSpacing = 3;
        layout_ = ui::LaneLayout(scene_, options);
    }

    double paint()
    {
        const Stopwatch watch;
        QPainter painter(&image_);
        ui::TimelineView view;
        view.area = QRectF(QPointF(0, 0), QSizeF(kPixels));
        view.range = scene_.axis().range();
        painter_.paint(painter, scene_, layout_, view);
        painter.end();
        return watch.ms();
    }
    [[nodiscard]] const QImage& image() const { return image_; }

private:
    ui::TimelineScene& scene_;
    ui::TimelinePainter painter_;
    ui::LaneLayout layout_;
    QImage image_;
};

void panAndZoom(std::size_t slices, int lanes)
{
    ui::TimelineScene scene;
    const auto trace = randomTrace(slices, lanes);
    std::size_t bytes = 0;
    for (const traces::Lane& lane : trace->lanes()) bytes += lane.memoryBytes();
    std::printf("store and index: %.1f bytes a slice\n", static_cast<double>(bytes) / static_cast<double>(trace->sliceCount()));
    scene.setSources({{trace, {}, false}});
    scene.analyseAtOnce(); // the first frame: all after it show the bubbles as well
    Frames frames(scene);
    frames.paint();
    ui::TimeAxis& axis = scene.axis();
    const double whole = static_cast<double>(axis.limits().length());
    std::vector<double> zoom;
    std::vector<double> all;
    for (int i = 0; i < 400; ++i) {
        axis.zoom(std::exp(-0.035), axis.limits().begin + static_cast<TimeNs>(whole * (0.3 + 0.001 * i)));
        zoom.push_back(frames.paint());
    }
    report("zoom in, from all to 40 slices a lane", zoom);
    all = zoom;
    for (const double share : {1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0002}) {
        std::vector<double> pan;
        const double length = whole * share;
        for (int i = 0; i < 100; ++i) {
            const double begin = whole * 0.2 + length * 0.013 * i;
            axis.setRange({static_cast<TimeNs>(begin), static_cast<TimeNs>(begin + length)});
            pan.push_back(frames.paint());
        }
        char what[64];
        std::snprintf(what, sizeof what, "pan at %g %% of the trace", share * 100);
        report(what, pan);
        all.insert(all.end(), pan.begin(), pan.end());
    }
    report("all frames", all);
}

void changeToPicture()
{
    std::vector<double> ms;
    ui::TimelineScene scene;
    Frames frames(scene);
    for (int i = 0; i < 60; ++i) {
        const Stopwatch watch;
        engine::ScheduleRequest request;
        request.ranks = 8;
        request.microbatches = 1250 - i % 2; // 8 x 1250 x 2 = 20,000 actions
        engine::CostTable costs;
        engine::StageCosts stage;
        stage.forward = 1'000'000;
        stage.backward = 2'000'000;
        costs.stages.assign(8, stage);
        costs.transfer = 100'000;
        const auto schedule = engine::generate(request);
        if (!schedule.ok()) std::abort();
        auto trace = engine::simulate(schedule.value(), costs);
        if (!trace.ok()) std::abort();
        scene.setSources({{std::make_shared<traces::Trace>(std::move(trace).value()), {}, false}});
        frames.layout();
        frames.paint();
        ms.push_back(watch.ms());
    }
    report("changed control to picture, 20,000 actions", ms);
}

} // namespace

int main(int argc, char** argv)
{
    qputenv("QT_QPA_PLATFORM", "offscreen"); // paints into images; a display is not needed
    QApplication app(argc, argv);
    const std::size_t slices = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
    const int lanes = argc > 2 ? std::atoi(argv[2]) : 64;
    if (slices == 0 || lanes <= 0) {
        std::fprintf(stderr, "use: timeline_bench [slices] [lanes], both above 0\n");
        return 2;
    }
    std::printf("%zu slices in %d lanes, %d x %d pixels\n", slices, lanes, kPixels.width(), kPixels.height());
    panAndZoom(slices, lanes);
    changeToPicture();
    return 0;
}
