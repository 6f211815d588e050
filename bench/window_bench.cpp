// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window must do in time, on Qt's offscreen platform: a changed control until everything is drawn again, the start
// of the program until the first timeline is drawn, and a live event until it is drawn.
#include "engine/plan/plan_json.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/main_window.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QSettings>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QThread>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace {

using namespace stagecraft;

class Lab {
public:
    explicit Lab(const QString& programFolder = "/nowhere") : settings_(folder_.filePath("bench.ini"), QSettings::IniFormat)
    {
        window_ = std::make_unique<ui::MainWindow>(settings_, ui::WindowOptions{.programFolder = programFolder, .theme = {}, .dialogs = {}});
        window_->resize(1600, 1000);
        window_->show();
        draw();
    }
    // All that is posted: layouts, queued replots, paint events.
    static void draw()
    {
        QCoreApplication::sendPostedEvents();
        QCoreApplication::processEvents();
    }
    ui::MainWindow& window() { return *window_; }
    // A plan of so many actions on ten ranks, simulated and drawn.
    void open(std::int64_t actions)
    {
        engine::Plan plan;
        plan.pipeline.ranks = 10;
        plan.pipeline.microbatches = static_cast<int>(actions) / 20;
        window_->workbench().document().startFrom(plan);
        draw();
    }

private:
    QTemporaryDir folder_;
    QSettings settings_;
    std::unique_ptr<ui::MainWindow> window_;
};

// A control changes: plan, schedule, simulation, figures, every panel drawn. The argument is the number of actions.
void controlChange(benchmark::State& state)
{
    Lab lab;
    lab.open(state.range(0));
    auto* microbatches = lab.window().findChild<QSpinBox*>("microbatches");
    int change = 1;
    for (auto _ : state) {
        microbatches->setValue(microbatches->value() - change);
        change = -change;
        Lab::draw();
        if (lab.window().workbench().simulation().busy()) state.SkipWithError("was not simulated at once");
    }
}
BENCHMARK(controlChange)->Arg(200)->Arg(2'000)->Arg(20'000)->Unit(benchmark::kMillisecond);

// A window is made, the first plan simulated and drawn; what the program does after Qt itself has started.
void firstTimeline(benchmark::State& state)
{
    for (auto _ : state) {
        Lab lab;
        lab.window().workbench().document().startFrom(engine::presetPlan("gpt-small").value());
        Lab::draw();
    }
}
BENCHMARK(firstTimeline)->Unit(benchmark::kMillisecond);

// Moving along a timeline of so many actions.
void pan(benchmark::State& state)
{
    Lab lab;
    lab.open(state.range(0));
    ui::TimeAxis& axis = lab.window().workbench().scene().axis();
    axis.zoom(0.3, axis.range().first());
    double way = axis.range().length / 50;
    for (auto _ : state) {
        axis.pan(way);
        way = -way;
        Lab::draw();
    }
}
BENCHMARK(pan)->Arg(20'000)->Unit(benchmark::kMillisecond);

// A run that does hardly anything but make events: how many of them a second the worker sends, the window stores and draws while it
// follows, whether any is lost, and how long the window was busy at most with one round of its events. The argument is the number of
// micro-batches of a step.
void liveRun(benchmark::State& state)
{
    Lab lab(QCoreApplication::applicationDirPath());
    engine::Plan plan;
    plan.model.layers.assign(2, engine::Linear{8, 8, engine::Activation::None});
    plan.costs.source = engine::CostSource::Model;
    plan.pipeline.ranks = 2;
    plan.pipeline.microbatches = static_cast<int>(state.range(0));
    plan.run.steps = 1'000'000;
    plan.run.check = engine::CheckMode::Off;
    ui::Workbench& bench = lab.window().workbench();
    bench.document().startFrom(plan);
    Lab::draw();
    for (auto _ : state) {
        if (const auto started = bench.startRun(); !started.ok()) return state.SkipWithError(started.error().message.c_str());
        while (bench.run().active() && (!bench.run().trace() || bench.run().trace()->sliceCount() == 0)) Lab::draw();
        if (!bench.run().active()) return state.SkipWithError("the run did not begin");
        std::vector<double> rounds;
        const std::size_t before = bench.run().trace()->sliceCount();
        QElapsedTimer clock;
        clock.start();
        while (clock.elapsed() < 10'000) {
            QElapsedTimer round;
            round.start();
            Lab::draw();
            rounds.push_back(static_cast<double>(round.nsecsElapsed()) / 1e6);
            QThread::msleep(1);
        }
        const double seconds = static_cast<double>(clock.nsecsElapsed()) / 1e9;
        const traces::Trace& trace = *bench.run().trace();
        std::sort(rounds.begin(), rounds.end());
        state.counters["slices/s"] = static_cast<double>(trace.sliceCount() - before) / seconds;
        state.counters["lost"] = static_cast<double>(trace.lostEvents());
        state.counters["round_p99_ms"] = rounds[rounds.size() * 99 / 100];
        bench.run().stop();
        while (bench.run().active()) Lab::draw();
    }
}
BENCHMARK(liveRun)->Arg(8)->Arg(64)->Iterations(1)->Unit(benchmark::kSecond);

} // namespace

int main(int argc, char** argv)
{
    qputenv("QT_QPA_PLATFORM", "offscreen");
    benchmark::Initialize(&argc, argv);
    QApplication application(argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
