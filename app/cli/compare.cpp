// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/compare.h"

#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/table.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

namespace stagecraft::cli {

namespace {

using traces::counted;
using traces::formatDuration;

struct Options {
    std::vector<std::string> traces; // the one that foretells, the one that happened
    bool json = false;
};

std::string relativeText(double error) { return fmt::format("{:+.2f} %", 100 * error); }

std::string furthestText(const traces::Trace& actual, const traces::StepComparison& step)
{
    return toText(actual.slice(step.furthest).action);
}

Json stepJson(const traces::Trace& actual, const traces::StepComparison& step)
{
    Json kinds = Json::array();
    for (const traces::KindComparison& kind : step.kinds)
        kinds.push_back({{"kind", std::string(kindName(kind.kind))},
                         {"matched", kind.matched},
                         {"predicted_median_ns", kind.predictedMedian},
                         {"actual_median_ns", kind.actualMedian},
                         {"median_error", kind.medianError},
                         {"mean_error", kind.meanError}});
    return {{"predicted_step", step.predicted.value},
            {"actual_step", step.actual.value},
            {"predicted_ns", step.predictedTime},
            {"actual_ns", step.actualTime},
            {"error", step.stepTimeError},
            {"matched", step.matched},
            {"only_predicted", step.onlyPredicted},
            {"only_actual", step.onlyActual},
            {"median_shift_ns", step.medianShift},
            {"max_shift_ns", step.maxShift},
            {"furthest", furthestText(actual, step)},
            {"kinds", std::move(kinds)}};
}

std::string stepText(const traces::Trace& actual, const traces::StepComparison& step)
{
    std::string text = fmt::format("\nstep {} as foretold by step {}: {} predicted, {} actual, error {}\n", step.actual.value,
                                   step.predicted.value, formatDuration(step.predictedTime), formatDuration(step.actualTime),
                                   relativeText(step.stepTimeError));
    Table table({{"kind", Align::Left},
                 {"matched", Align::Right},
                 {"predicted (median)", Align::Right},
                 {"actual (median)", Align::Right},
                 {"error (median)", Align::Right},
                 {"error (mean)", Align::Right}});
    for (const traces::KindComparison& kind : step.kinds)
        table.add({std::string(kindName(kind.kind)), fmt::format("{}", kind.matched), formatDuration(kind.predictedMedian),
                   formatDuration(kind.actualMedian), relativeText(kind.medianError), relativeText(kind.meanError)});
    text += table.text();
    text += fmt::format("  beginnings differ by {} (median), most by {} ({})\n", formatDuration(step.medianShift),
                        formatDuration(step.maxShift), furthestText(actual, step));
    if (step.onlyPredicted > 0) text += "  only predicted: " + counted(step.onlyPredicted, "action") + "\n";
    if (step.onlyActual > 0) text += "  only actual: " + counted(step.onlyActual, "action") + "\n";
    return text;
}

// "step 3", "steps 0, 3 to 5"
std::string stepsText(const std::vector<traces::Step>& steps)
{
    std::string text = steps.size() == 1 ? "step" : "steps";
    for (std::size_t first = 0; first < steps.size();) {
        std::size_t last = first;
        while (last + 1 < steps.size() && steps[last + 1].value == steps[last].value + 1) ++last;
        text += fmt::format("{} {}", first == 0 ? "" : ",", steps[first].value);
        if (last > first) text += fmt::format(" to {}", steps[last].value);
        first = last + 1;
    }
    return text;
}

std::string leftOutText(const std::vector<traces::Step>& steps, std::string_view role)
{
    return steps.empty() ? std::string() : fmt::format("\nleft out: {}, which the {} trace alone has\n", stepsText(steps), role);
}

Json numbersJson(const std::vector<traces::Step>& steps)
{
    Json json = Json::array();
    for (const traces::Step step : steps) json.push_back(step.value);
    return json;
}

// A step of both runs whose losses are known.
struct TwoLosses {
    int step = 0;
    double predicted = 0;
    double actual = 0;
};

std::vector<TwoLosses> lossesOf(const traces::Trace& predicted, const traces::Trace& actual)
{
    std::map<traces::Step, double> known;
    for (const traces::StepSpan& step : predicted.steps())
        if (step.loss) known.emplace(step.step, *step.loss);
    std::vector<TwoLosses> losses;
    for (const traces::StepSpan& step : actual.steps())
        if (const auto other = known.find(step.step); step.loss && other != known.end()) losses.push_back({step.step.value, other->second, *step.loss});
    return losses;
}

Json lossJson(const std::vector<TwoLosses>& losses)
{
    Json json = Json::array();
    for (const TwoLosses& each : losses) json.push_back({{"step", each.step}, {"predicted", each.predicted}, {"actual", each.actual}});
    return json;
}

// The curves of two runs beside each other: of long ones so many steps in even distances, with the first and the last.
std::string lossText(const std::vector<TwoLosses>& losses, const traces::Trace& predicted, const traces::Trace& actual)
{
    constexpr std::size_t kMostRows = 20;
    if (losses.empty()) return {};
    Table table({{"loss of step", Align::Right}, {predicted.info.schedule, Align::Right}, {actual.info.schedule, Align::Right}, {"difference", Align::Right}});
    const std::size_t rows = std::min(kMostRows, losses.size());
    for (std::size_t row = 0; row < rows; ++row) {
        const TwoLosses& each = losses[rows == 1 ? 0 : row * (losses.size() - 1) / (rows - 1)];
        table.add({fmt::format("{}", each.step), fmt::format("{:.5g}", each.predicted), fmt::format("{:.5g}", each.actual),
                   fmt::format("{:+.3g}", each.actual - each.predicted)});
    }
    return "\n" + table.text();
}

std::string heading(std::string_view role, const std::string& file, const traces::Trace& trace)
{
    return fmt::format("{:9}  {}: {}; {}\n", role, file, shapeText(trace.info), labelText(trace.info.label));
}

int compare(const Options& options)
{
    const Expected<traces::Trace> predicted = traces::loadTrace(options.traces[0]);
    if (!predicted.ok()) return failed(predicted.error());
    const Expected<traces::Trace> actual = traces::loadTrace(options.traces[1]);
    if (!actual.ok()) return failed(actual.error());
    Json notes = Json::array();
    for (const auto& [trace, file] : {std::pair{&predicted.value(), &options.traces[0]}, std::pair{&actual.value(), &options.traces[1]}}) {
        sayNotes(*trace, *file);
        for (const std::string& caveat : traces::caveatsOf(*trace)) notes.push_back(fmt::format("{}: {}", *file, caveat));
    }
    const Expected<traces::TraceComparison> compared = traces::compareTraces(predicted.value(), actual.value());
    if (!compared.ok()) return failed(compared.error());
    Json json = Json::array();
    std::string text = heading("predicted", options.traces[0], predicted.value()) +
                       heading("actual", options.traces[1], actual.value());
    for (const traces::StepComparison& step : compared.value().steps) {
        json.push_back(stepJson(actual.value(), step));
        text += stepText(actual.value(), step);
    }
    text += leftOutText(compared.value().onlyPredicted, "predicted") + leftOutText(compared.value().onlyActual, "actual");
    const std::vector<TwoLosses> losses = lossesOf(predicted.value(), actual.value());
    text += lossText(losses, predicted.value(), actual.value());
    if (!options.json) return print(text);
    return print(jsonText({{"steps", std::move(json)},
                           {"only_predicted_steps", numbersJson(compared.value().onlyPredicted)},
                           {"only_actual_steps", numbersJson(compared.value().onlyActual)},
                           {"loss", lossJson(losses)},
                           {"notes", std::move(notes)}}));
}

} // namespace

void addCompare(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "compare",
                             "How well does one trace foretell another? Errors are (predicted - actual) / actual. Of two runs also their losses, step by step",
                             "stagecraft-cli compare simulated.strace run.strace --json");
    const auto options = std::make_shared<Options>();
    verb.add_option("TRACES", options->traces,
                    "The trace that foretells, then the one that happened. Each step of the second is held against the step "
                    "of its number, or the only one of the first")
        ->type_name("A B")
        ->required()
        ->expected(2);
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return compare(*options); }; });
}

} // namespace stagecraft::cli
