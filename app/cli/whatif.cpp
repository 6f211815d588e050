// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"
#include "app/cli/live_run.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/trace_argument.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "app/cli/whatif_table.h"
#include "engine/explain/family_shape.h"
#include "traces/base/units.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

using engine::Observed;
using engine::Plan;
using engine::Prediction;
using traces::TraceLabel;

struct Options {
    std::string input;
    Overrides overrides;
    std::vector<std::string> schedules;
    std::string trace;
    bool run = false;
    bool json = false;
};

// The trace says what actions take.
Expected<void> checkTimes(const Overrides& given)
{
    for (const auto& [option, text] : {std::pair{"--forward", &given.forward}, std::pair{"--backward", &given.backward},
                                       std::pair{"--input-grad", &given.inputGrad}, std::pair{"--weight-grad", &given.weightGrad}})
        if (*text)
            return Error{fmt::format("{} {}: the trace says what its actions take; --stage-scale makes a stage faster or slower, and simulate "
                                     "takes times that are given",
                                     option, **text)};
    return {};
}

Expected<void> checkNames(const Options& options)
{
    if (!options.schedules.empty() && options.overrides.schedule)
        return Error{fmt::format("--schedule {}: with --schedules it is one too many; give all names to --schedules", *options.overrides.schedule)};
    for (const std::string& name : options.schedules)
        if (!engine::findFamily(name))
            return Error{fmt::format("--schedules {}: no such schedule; stagecraft-cli list schedules names them (for a file take --schedule FILE)", name)};
    return {};
}

// The options for a schedule: chunks and slices are the nearest that it takes, unless they are given.
Overrides forSchedule(Overrides given, const std::string& name, const engine::PipelineSpec& before)
{
    given.schedule = name;
    const auto setTo = [](Overrides::Text& option, int value, int old) {
        if (!option && value != old) option = fmt::format("{}", value);
    };
    setTo(given.chunks, engine::chunksFor(name, before.chunks), before.chunks);
    setTo(given.slices, engine::slicesFor(name, before.slices), before.slices);
    return given;
}

// A prediction, or the way to end where there is none.
struct Attempt {
    std::string schedule;
    std::optional<Prediction> prediction = {};
    Error error = {};
    int code = kDone;
};

Attempt attempt(const Observed& observed, const Overrides& given)
{
    Attempt made{.schedule = given.schedule.value_or(observed.plan.pipeline.schedule)};
    const auto refuse = [&](const Error& error, int code) {
        made.error = error;
        made.code = code;
        return made;
    };
    Expected<Plan> plan = withScheduleFile(observed.plan, given);
    if (!plan.ok()) return refuse(plan.error(), kFailed);
    plan = withOverrides(std::move(plan).value(), given);
    if (!plan.ok()) return refuse(plan.error(), kWrongUse);
    if (plan.value() == observed.plan && !given.schedule) return made; // nothing is changed
    Expected<Prediction> prediction = engine::predict(observed, std::move(plan).value());
    if (!prediction.ok()) return refuse(prediction.error(), kWrongUse); // the plan as it was could be predicted: the options made it so
    made.prediction = std::move(prediction).value();
    return made;
}

std::vector<Attempt> attempts(const Observed& observed, const Options& options)
{
    std::vector<std::string> names = options.schedules;
    if (names.empty() && options.overrides.schedule && engine::findFamily(*options.overrides.schedule)) names.push_back(*options.overrides.schedule);
    if (names.empty()) return {attempt(observed, options.overrides)};
    std::vector<Attempt> made;
    for (const std::string& name : names) made.push_back(attempt(observed, forSchedule(options.overrides, name, observed.plan.pipeline)));
    return made;
}

// A run has the speed that the machine has; in mode emulated it takes from the plan what transfers cost.
Expected<void> checkRun(const Observed& observed, const std::vector<Attempt>& made)
{
    if (observed.label != TraceLabel::Measured && observed.label != TraceLabel::Emulated)
        return Error{fmt::format("--run: the trace is {}, so there is no way of running to repeat; take stagecraft-cli run PLAN", labelText(observed.label))};
    if (observed.plan.model.empty()) return Error{"--run: the trace has no plan with a model, so there is nothing to run"};
    for (const Attempt& one : made) {
        if (!one.prediction) continue;
        engine::CostSpec asked = one.prediction->plan.costs;
        const engine::CostSpec& seen = observed.plan.costs;
        asked.measured = seen.measured;
        asked.seed = seen.seed;
        if (observed.label == TraceLabel::Emulated) {
            asked.latency = seen.latency;
            asked.bandwidth = seen.bandwidth;
            asked.boundaryBytes = seen.boundaryBytes;
        }
        engine::MachineModel machine = one.prediction->plan.machine;
        machine.memory = observed.plan.machine.memory; // holds for runs as well
        if (asked != seen || machine != observed.plan.machine)
            return Error{fmt::format("--run: a run takes as long as the machine takes; leave out the options for costs and the machine but --memory{}",
                                     observed.label == TraceLabel::Emulated ? " and those of transfers between ranks" : "")};
    }
    return {};
}

// Really runs what was predicted, as often as the trace's own plan ran. The row behind the predicted one, whose error is then known.
Expected<engine::WhatIfRow> perform(const Observed& observed, const Prediction& prediction, int steps)
{
    Plan plan = prediction.plan;
    plan.run.mode = observed.label == TraceLabel::Emulated ? engine::RunMode::Emulated : engine::RunMode::Threads;
    plan.run.steps = steps;
    const Expected<std::unique_ptr<engine::Session>> session = makeSession();
    if (!session.ok()) return session.error();
    const Expected<LiveRun> run = follow(*session.value(), plan, {.journal = "", .progress = ::isatty(STDERR_FILENO) == 1});
    if (!run.ok()) return run.error();
    if (run.value().failure) return failureOf(*run.value().failure);
    if (!run.value().result) return Error{fmt::format("the run ended ({}) without a result", engine::stateText(run.value().state))};
    if (run.value().result->gradientCheck == engine::GradientCheck::Failed)
        return Error{fmt::format("the gradients differ from the sequential model's by up to {:.3g}; the run did not compute what the plan says",
                                 run.value().result->gradientMaxAbsDiff)};
    return engine::performedRow(observed, prediction, run.value().trace);
}

void addNetworkNote(WhatIf& told, const Overrides& given)
{
    const bool seen = told.observed.label == TraceLabel::Measured || told.observed.label == TraceLabel::Imported;
    if (given.bandwidth && !given.latency && seen)
        told.notes.push_back(fmt::format("the trace's median hand-off of {} stays as the latency beside --bandwidth; --latency replaces it",
                                         traces::formatDuration(told.observed.plan.costs.latency)));
}

int whatIf(const Options& options)
{
    for (const Expected<void>& checked : {checkTraceTarget(options.trace), checkTimes(options.overrides), checkNames(options)})
        if (!checked.ok()) return wrongUse(checked.error());
    if (options.run) {
        std::signal(SIGPIPE, SIG_IGN);
        if (const auto engine = makeSession(); !engine.ok()) return failed(engine.error()); // may begin again in the program that has one
    }
    const Expected<traces::Trace> loaded = traces::loadTrace(options.input);
    if (!loaded.ok()) return failed(loaded.error());
    sayNotes(loaded.value(), options.input);
    Expected<Observed> observed = engine::observe(loaded.value());
    if (!observed.ok()) return failed(observed.error().in(options.input));
    WhatIf told{.file = options.input, .observed = std::move(observed).value()};
    told.notes = told.observed.notes;
    addNetworkNote(told, options.overrides);

    const Expected<Prediction> same = engine::predict(told.observed, told.observed.plan);
    if (!same.ok()) return failed(same.error().in(options.input));
    told.rows = {traceRow(told.observed, same.value()), predictedRow(told.observed, same.value(), engine::WhatIfKind::Same)};
    std::vector<Attempt> made = attempts(told.observed, options);
    const auto predicted = std::ranges::count_if(made, [](const Attempt& one) { return one.prediction.has_value(); });
    if (predicted == 0 && made.front().code != kDone)
        return made.front().code == kWrongUse ? wrongUse(made.front().error) : failed(made.front().error);
    if (predicted == 0 && options.run) return wrongUse(Error{"--run: nothing is changed, and the trace is the run of its plan; change something"});
    if (options.run)
        if (auto checked = checkRun(told.observed, made); !checked.ok()) return wrongUse(checked.error());
    if (!options.trace.empty() && predicted != 1)
        return wrongUse(Error{fmt::format("--trace {}: it takes the trace of one changed plan, and there are {}", options.trace, predicted)});

    int code = kDone;
    for (Attempt& one : made) {
        if (!one.prediction) {
            if (one.code != kDone) told.leftOut.push_back({one.schedule, one.error.message});
            continue;
        }
        Prediction& prediction = *one.prediction;
        told.rows.push_back(predictedRow(told.observed, prediction));
        if (!options.trace.empty())
            if (auto saved = saveTraceTo(prediction.trace, prediction.plan, options.trace); !saved.ok()) return failed(saved.error());
        if (!options.run) continue;
        const int steps = std::max(1, static_cast<int>(loaded.value().steps().size()));
        const Expected<engine::WhatIfRow> performed = perform(told.observed, prediction, steps);
        if (performed.ok()) {
            told.rows.back().predictionError = engine::predictionError(told.rows.back().step, performed.value().step);
            told.rows.push_back(performed.value());
        } else {
            code = failed(performed.error().in(one.schedule));
        }
    }
    const int printed = print(options.json ? jsonText(whatIfJson(told)) : whatIfText(told));
    return printed == kDone ? code : printed;
}

} // namespace

void addWhatIf(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "whatif",
                             "Take what the actions of a trace cost, change its plan, and predict the step: another schedule, other numbers or partition, "
                             "a faster stage or network",
                             "stagecraft-cli whatif run.strace --schedules gpipe,interleaved,zb-h1\n"
                             "  stagecraft-cli whatif run.strace --microbatches 32 --stage-scale 1,1,0.5,1 --json\n"
                             "  stagecraft-cli whatif run.strace --partition 3,2,2,3 --run");
    const auto options = std::make_shared<Options>();
    verb.add_option("TRACE", options->input, "Trace file: .strace, .json or .json.gz; of a run, a simulation, or another tool")->required();
    verb.add_option("--schedules", options->schedules,
                    "One or more schedules, a row for each; chunks and slices are the nearest that each takes, unless they are given")
        ->type_name("NAME,...")
        ->delimiter(',');
    verb.add_flag("--run", options->run, "Really run each changed plan too, in the trace's mode and for as many steps, and tell how far off its prediction was")
        ->disable_flag_override();
    verb.add_option("--trace", options->trace, traceTargetHelp() + "; of the one changed plan, as it was predicted")->type_name("FILE");
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return whatIf(*options); }; });
}

} // namespace stagecraft::cli
