// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/analysis/finished_steps.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

using traces::counted;

struct Options {
    std::vector<std::string> traces;
    bool json = false;
};

Json stepJson(const traces::Trace& trace, const traces::StepFigures& figures, const traces::FinishedSteps& finished)
{
    Json json{{"step", figures.step.value}};
    if (!finished.contains(figures.step)) json["incomplete"] = true;
    json.update(figuresJson(trace.info, figures));
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
    for (const traces::StepFigures& figures : traces::allStepFigures(trace)) {
        steps.push_back(stepJson(trace, figures, finished));
        text += fmt::format("\nstep {}{}\n{}", figures.step.value,
                            finished.contains(figures.step) ? "" : " (incomplete: it broke off, these are the figures of a part)",
                            figuresText(figures));
    }
    if (steps.empty()) {
        return failed(Error{
            fmt::format("{}: the trace has no computing slice, so there is nothing to analyse; it has {} in {}",
                        file, counted(trace.sliceCount(), "event"), counted(trace.laneCount(), "lane"))});
    }
    if (!options.json) return print(text);
    sayNotes(trace, file); // the text has them in its heading
    return print(jsonText({{"steps", steps},
                           {"ranks", trace.info.ranks},
                           {"events", trace.sliceCount()},
                           {"clock", std::string(clockText(trace.info.clock))}}));
}

} // namespace

void addAnalyze(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "analyze", "Read a trace and print the figures of each of its steps",
                             "stagecraft-cli analyze run.strace --json");
    const auto options = std::make_shared<Options>();
    verb.add_option("TRACE", options->traces, "Trace file: .strace, .json or .json.gz")->required();
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return analyze(*options); }; });
}

} // namespace stagecraft::cli
