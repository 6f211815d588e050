// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/table.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/analysis/finished_steps.h"
#include "traces/analysis/statistics.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

namespace stagecraft::cli {

namespace {

using traces::counted;
using traces::formatDuration;

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
    for (const std::string& note : trace.notes()) text += fmt::format("  note: {}\n", note);
    return text;
}

constexpr std::size_t kMostIntervals = 12; // of a histogram: a character each

// How long actions and hand-offs took in all steps that count.
struct Durations {
    struct Row {
        traces::ActionStatistics statistics;
        traces::Histogram histogram;
    };
    bool firstLeftOut = false;
    std::vector<Row> actions;
    std::optional<traces::TimeNs> handOff;
};

Durations durationsOf(const traces::Trace& trace)
{
    Durations durations;
    traces::StatisticsOptions options;
    durations.firstLeftOut = traces::stepsLeftOut(trace.steps().size()) > 0;
    if (durations.firstLeftOut) options.from = trace.steps()[traces::stepsLeftOut(trace.steps().size())].step;
    for (const traces::ActionStatistics& s : traces::actionStatistics(trace, options))
        durations.actions.push_back({s, traces::histogramOf(traces::durationsOf(trace, s.stage, s.flow, s.kind, options), kMostIntervals)});
    durations.handOff = traces::medianHandOff(trace, options);
    return durations;
}

// "0" is a stage; in two-direction schedules each direction has stages of its own.
std::string flowText(traces::Flow flow) { return flow == traces::Flow::Down ? "d" : flow == traces::Flow::Up ? "u" : ""; }

Json outliersJson(const traces::Trace& trace, const std::vector<traces::SliceRef>& outliers)
{
    Json json = Json::array();
    for (const traces::SliceRef& ref : outliers) {
        const traces::Slice slice = trace.slice(ref);
        json.push_back({{"slice", trace.sliceName(ref)},
                        {"rank", trace.lane(ref.lane).info().rank.value},
                        {"step", slice.step.value},
                        {"begin_ns", slice.begin},
                        {"end_ns", slice.end}});
    }
    return json;
}

Json durationsJson(const traces::Trace& trace, const Durations& durations)
{
    Json actions = Json::array();
    for (const auto& [s, histogram] : durations.actions)
        actions.push_back({{"stage", s.stage.value},
                           {"direction", flowText(s.flow)},
                           {"kind", std::string(kindName(s.kind))},
                           {"count", s.count},
                           {"median_ns", s.median},
                           {"lower_quartile_ns", s.lowerQuartile},
                           {"upper_quartile_ns", s.upperQuartile},
                           {"p95_ns", s.p95},
                           {"min_ns", s.least},
                           {"max_ns", s.most},
                           {"outliers", outliersJson(trace, s.outliers)},
                           {"histogram", {{"from_ns", histogram.from}, {"width_ns", histogram.width}, {"counts", histogram.counts}}}});
    return {{"actions", std::move(actions)}, {"hand_off_median_ns", durations.handOff ? Json(*durations.handOff) : Json()}};
}

// A bar per interval, in eighths of the highest.
std::string shapeOf(const traces::Histogram& histogram)
{
    constexpr std::array<std::string_view, 9> kBars{"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
    std::string shape;
    for (const std::size_t count : histogram.counts) shape += kBars[(count * 8 + most - 1) / most];
    return shape;
}

std::string durationsText(const traces::Trace& trace, const Durations& durations)
{
    Table table({{"stage", Align::Right},
                 {"kind", Align::Left},
                 {"count", Align::Right},
                 {"median", Align::Right},
                 {"middle half", Align::Right},
                 {"p95", Align::Right},
                 {"shortest", Align::Right},
                 {"longest", Align::Right},
                 {"far out", Align::Right},
                 {"shortest to longest", Align::Left}});
    for (const auto& [s, histogram] : durations.actions)
        table.add({flowText(s.flow) + fmt::format("{}", s.stage.value), std::string(kindName(s.kind)),
                   fmt::format("{}", s.count), formatDuration(s.median),
                   fmt::format("{} – {}", formatDuration(s.lowerQuartile), formatDuration(s.upperQuartile)), formatDuration(s.p95),
                   formatDuration(s.least), formatDuration(s.most), s.outliers.empty() ? "" : fmt::format("{}", s.outliers.size()),
                   shapeOf(histogram)});
    std::string text = fmt::format("\ndurations of actions{}\n{}",
                                   durations.firstLeftOut ? ", the first step left out" : "", table.text());
    std::vector<std::string> outliers;
    for (const Durations::Row& row : durations.actions) {
        for (const traces::SliceRef& ref : row.statistics.outliers) {
            const traces::Slice slice = trace.slice(ref);
            outliers.push_back(fmt::format("{} of step {} ({})", trace.sliceName(ref), slice.step.value, formatDuration(slice.end - slice.begin)));
        }
    }
    if (!outliers.empty()) {
        constexpr std::size_t kShown = 8;
        const std::size_t left = outliers.size() > kShown ? outliers.size() - kShown : 0;
        outliers.resize(outliers.size() - left);
        text += fmt::format("  far out, longer than the middle half by three times its width: {}{}\n", fmt::join(outliers, ", "),
                            left > 0 ? fmt::format(", and {} more", left) : "");
    }
    if (durations.handOff)
        text += fmt::format("  hand-off between ranks: {} (median)\n", formatDuration(*durations.handOff));
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
    if (options.traces.size() > 1) {
        return wrongUse(Error{
            fmt::format("{} traces at once: files are not joined to one yet; give one, and the others in calls of their own",
                        options.traces.size())});
    }
    const std::string& file = options.traces.front();
    const Expected<traces::Trace> loaded = traces::loadTrace(file);
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
        return failed(Error{
            fmt::format("{}: the trace has no computing slice, so there is nothing to analyse; it has {} in {}",
                        file, counted(trace.sliceCount(), "event"), counted(trace.laneCount(), "lane"))});
    }
    const Durations durations = durationsOf(trace);
    text += durationsText(trace, durations);
    Json json{{"steps", steps},
              {"ranks", trace.info.ranks},
              {"events", trace.sliceCount()},
              {"clock", std::string(clockText(trace.info.clock))},
              {"durations", durationsJson(trace, durations)}};
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
    verb.add_option("TRACE", options->traces, "Trace file: .strace, .json or .json.gz")->required();
    verb.add_flag("--waterfall", options->waterfall,
                  "Also where the middle step's time went: ideal work, structure of the schedule, imbalance, communication, jitter and "
                  "overhead, by simulating its order again");
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return analyze(*options); }; });
}

} // namespace stagecraft::cli
