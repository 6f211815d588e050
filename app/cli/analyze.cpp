// SPDX-License-Identifier: Apache-2.0
#include "app/cli/device_time.h"
#include "app/cli/durations.h"
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/gpu_memory.h"
#include "app/cli/trace_argument.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/analysis/finished_steps.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

using traces::counted;

struct Options {
    std::vector<std::string> traces;
    bool json = false;
    bool waterfall = false;
};

Json stepJson(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures, const traces::FinishedSteps& finished)
{
    Json json{{"step", figures.step.value}};
    if (!finished.contains(figures.step)) json["incomplete"] = true;
    json.update(figuresJson(trace, index, figures));
    return json;
}

std::string heading(const std::string& file, const traces::Trace& trace)
{
    std::string text = fmt::format("{}: {}; {}, {}, {} clock\n", file, shapeText(trace.info), labelText(trace.info.label),
                                   counted(trace.sliceCount(), "event"), clockText(trace.info.clock));
    if (trace.lostEvents() > 0) text += "  " + counted(trace.lostEvents(), "event") + " lost while it was recorded\n";
    for (const std::string& note : trace.notes()) text += fmt::format("  warning: {}\n", traces::harmless(note));
    for (const std::string& note : trace.information()) text += fmt::format("  note: {}\n", traces::harmless(note));
    text += clocksText(trace);
    return text;
}

// The one whose time stands for the run's steps; the first that computes where the trace says nothing of steps.
traces::Step middleStepOf(const traces::Trace& trace)
{
    const std::vector<traces::StepTime> counted = traces::countedSteps(trace.steps(), trace.pauses());
    return counted.empty() ? traces::stepsOf(trace).front() : traces::middleStep(counted).step;
}

int analyze(const Options& options)
{
    const std::string file = fmt::format("{}", fmt::join(options.traces, ", "));
    const Expected<traces::Trace> loaded = loadTraces(options.traces);
    if (!loaded.ok()) return failed(loaded.error());
    const traces::Trace& trace = loaded.value();

    std::string text = heading(file, trace);
    Json steps = Json::array();
    const traces::FinishedSteps finished(trace);
    const traces::StepIndex index(trace);
    const std::vector<traces::StepFigures> all = traces::allStepFigures(trace);
    for (const traces::StepFigures& figures : all) {
        if (options.json) steps.push_back(stepJson(trace, index, figures, finished));
        else text += fmt::format("\nstep {}{}\n{}", figures.step.value,
                            finished.contains(figures.step) ? "" : " (incomplete: it broke off, these are the figures of a part)",
                            figuresText(trace, index, figures));
    }
    if (all.empty()) {
        sayNotes(trace, file); // they may tell why nothing ran
        return failed(Error{
            fmt::format("{}: the trace has no computing slice, so there is nothing to analyse; it has {} in {}",
                        file, counted(trace.sliceCount(), "event"), counted(trace.laneCount(), "lane"))});
    }
    const traces::Durations durations = traces::durationsOf(trace, kHistogramIntervals);
    const std::vector<traces::RankDeviceTime> deviceTimes = traces::deviceTimes(trace);
    text += durationsText(trace, durations);
    if (!deviceTimes.empty()) text += deviceTimeText(deviceTimes);
    const std::vector<traces::GpuPeak> gpus = traces::gpuPeaks(trace);
    if (!gpus.empty()) text += gpuMemoryText(trace, gpus);
    const std::vector<traces::RankMemoryOperations> operations = traces::memoryOperations(trace);
    if (!operations.empty()) text += memoryOperationsText(operations);
    Json json{{"steps", steps},
              {"ranks", trace.info.ranks},
              {"events", trace.sliceCount()},
              {"clock", std::string(clockText(trace.info.clock))},
              {"notes", traces::caveatsOf(trace)},
              {"information", trace.information()},
              {"clocks", clocksJson(trace)},
              {"durations", durationsJson(trace, durations)}};
    if (!deviceTimes.empty()) json["device_time"] = deviceTimeJson(deviceTimes);
    if (!gpus.empty()) json["gpus"] = gpuMemoryJson(trace, gpus);
    if (!operations.empty()) json["memory_operations"] = memoryOperationsJson(operations);
    if (options.waterfall) {
        const traces::Step step = middleStepOf(trace);
        const Expected<engine::Waterfall> waterfall = engine::waterfallOf(trace, step);
        if (!waterfall.ok()) return failed(waterfall.error().in(file));
        json["waterfall"] = waterfallJson(waterfall.value());
        json["waterfall"]["step"] = step.value;
        text += fmt::format("\nstep {}, simulated again with the median times\n{}", step.value, waterfallText(waterfall.value()).substr(1));
    }
    if (!options.json) return print(text);
    sayNotes(trace, file); // the text has them in its heading
    return print(jsonText(json));
}

} // namespace

void addAnalyze(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "analyze", "Read a trace and print the figures of each of its steps, and how long its actions took",
                             "stagecraft-cli analyze run.strace --json");
    const auto options = std::make_shared<Options>();
    verb.add_option("TRACE", options->traces, "Trace file: .strace, .json or .json.gz; or the parts that the ranks of a run in processes wrote")->required();
    verb.add_flag("--waterfall", options->waterfall,
                  "Also where the middle step's time went: ideal work, structure of the schedule, imbalance, communication, jitter and "
                  "overhead, by simulating its order again");
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return analyze(*options); }; });
}

} // namespace stagecraft::cli
