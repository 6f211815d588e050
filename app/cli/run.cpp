// SPDX-License-Identifier: Apache-2.0
#include "app/cli/durations.h"
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/live_engine.h"
#include "app/cli/live_run.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/throughput.h"
#include "app/cli/trace_argument.h"
#include "app/cli/verbs.h"
#include "engine/data/dataset.h"
#include "engine/plan/plan_words.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

constexpr int kMaxSteps = 1'000'000;
constexpr std::size_t kSlicesInMemory = std::size_t{1} << 14; // a few MB

struct Options {
    std::string plan;
    Overrides overrides;
    Overrides::Text mode, device, steps, check, data, targets, tokens;
    Overrides::Text checkpoint, checkpointEvery, resume, clipNorm;
    std::string trace;
    bool json = false;
};

// Finds `text` among the names of `values`; an error lists them.
template <class Value, std::size_t N>
Expected<Value> choose(std::string_view option, const std::string& text, const std::array<Value, N>& values,
                       std::string_view (*nameOf)(Value))
{
    std::vector<std::string_view> names;
    for (const Value value : values) {
        if (nameOf(value) == text) return value;
        names.push_back(nameOf(value));
    }
    return Error{fmt::format("{} {}: not available; there is: {}", option, text, fmt::join(names, ", "))};
}

// --data text, text:FILE, idx:FILE, npy:FILE or synthetic, with --targets and --tokens.
Expected<engine::Plan> withData(engine::Plan plan, const Options& options)
{
    engine::DataSpec& data = plan.data;
    if (options.data) {
        const std::size_t colon = std::min(options.data->find(':'), options.data->size());
        const std::string source = options.data->substr(0, colon);
        const auto known = std::find_if(engine::kDataSourceWords.begin(), engine::kDataSourceWords.end(), [&](const auto& word) { return word.first == source; });
        if (known == engine::kDataSourceWords.end())
            return Error{fmt::format("--data {}: not known; synthetic, text, text:FILE, idx:FILE or npy:FILE", *options.data)};
        data = {.source = known->second, .path = options.data->substr(std::min(colon + 1, options.data->size())), .targets = {}};
    }
    if (options.targets) data.targets = *options.targets;
    if (options.tokens) {
        const auto known = std::find_if(engine::kTokenWords.begin(), engine::kTokenWords.end(), [&](const auto& word) { return word.first == *options.tokens; });
        if (known == engine::kTokenWords.end()) return Error{fmt::format("--tokens {}: not known; characters or bytes", *options.tokens)};
        data.tokens = known->second;
    }
    if (!options.data && !options.targets && !options.tokens) return plan;
    if (auto sound = engine::checkData(data, plan.model); !sound.ok()) return sound.error();
    return plan;
}

Expected<engine::Plan> withRunOptions(engine::Plan plan, const Options& options)
{
    using engine::CheckMode;
    using engine::DeviceKind;
    using engine::RunMode;
    if (options.mode) {
        const auto mode =
            choose("--mode", *options.mode, std::array{RunMode::Threads, RunMode::Emulated}, engine::runModeText);
        if (!mode.ok()) return mode.error();
        plan.run.mode = mode.value();
    }
    if (options.device) {
        const auto device = choose("--device", *options.device, std::array{DeviceKind::Cpu}, engine::deviceText);
        if (!device.ok()) return device.error();
        plan.run.device = device.value();
    }
    if (options.check) {
        const auto check = choose("--check", *options.check, std::array{CheckMode::Off, CheckMode::First, CheckMode::All},
                                  engine::checkModeText);
        if (!check.ok()) return check.error();
        plan.run.check = check.value();
    }
    if (options.steps) {
        const Expected<long long> steps = parseWhole("--steps", *options.steps, 1, kMaxSteps);
        if (!steps.ok()) return steps.error();
        plan.run.steps = static_cast<int>(steps.value());
    }
    if (options.clipNorm) {
        const std::string& text = *options.clipNorm;
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), plan.run.clipNorm);
        if (code != std::errc{} || end != text.data() + text.size() || !(plan.run.clipNorm >= 0 && plan.run.clipNorm <= 1e30))
            return Error{fmt::format("--clip-norm {} is not allowed; a number from 0 (no clipping) to 1e+30", text)};
    }
    if (options.checkpoint) plan.run.checkpoint = *options.checkpoint;
    if (options.resume) plan.run.resume = *options.resume;
    if (options.checkpointEvery) {
        const Expected<long long> every = parseWhole("--checkpoint-every", *options.checkpointEvery, 0, kMaxSteps);
        if (!every.ok()) return every.error();
        if (plan.run.checkpoint.empty())
            return Error{fmt::format("--checkpoint-every {}: there is no folder for the checkpoints; give --checkpoint DIR", *options.checkpointEvery)};
        plan.run.checkpointEvery = static_cast<int>(every.value());
    }
    return withData(std::move(plan), options);
}

// Figures of the step whose time is the run's step time.
std::optional<traces::StepFigures> middleFigures(const traces::Trace& trace)
{
    const std::vector<traces::StepTime> counted = traces::countedSteps(trace.steps(), trace.pauses());
    if (counted.empty()) return std::nullopt;
    Expected<traces::StepFigures> figures = traces::stepFigures(trace, traces::middleStep(counted).step);
    if (!figures.ok()) return std::nullopt; // its events were lost
    return std::move(figures).value();
}

std::string basisText(const LiveRun& run)
{
    const std::size_t steps = run.droppedSteps + run.trace.steps().size();
    const std::size_t leftOut = traces::stepsLeftOut(steps);
    return fmt::format("median of {}{}", steps - leftOut, leftOut > 0 ? ", the first left out" : "");
}

Json resultJson(const LiveRun& run, const std::optional<traces::StepFigures>& figures)
{
    const engine::RunResult& result = *run.result;
    Json json{{"mode", result.mode},
            {"device", result.device},
            {"steps", result.steps},
            {"step_ns", result.stepNs},
            {"predicted_step_ns", result.predictedStepNs},
            {"ideal_step_ns", result.idealStepNs},
            {"efficiency", result.efficiency},
            {"loss", result.loss},
            {"outputs", result.outputs},
            {"gradient_check", std::string(engine::gradientCheckText(result.gradientCheck))},
            {"gradient_max_abs_diff", result.gradientMaxAbsDiff},
            {"per_rank", figures ? ranksJson(run.trace, traces::StepIndex(run.trace), *figures) : Json::array()},
            {"notes", run.trace.notes()}};
    json["throughput"] = throughputJson(result.throughput);
    json["measured"] = durationsJson(run.trace, durationsOf(run.trace))["actions"];
    if (result.text) {
        json["token_entropy"] = result.text->entropy;
        json["sample"] = {{"before", result.text->before}, {"after", result.text->after}};
    }
    return json;
}

std::string lossText(const std::vector<double>& loss)
{
    if (loss.empty()) return "none";
    if (loss.size() == 1) return fmt::format("{:.6g}", loss.front());
    return fmt::format("{:.6g} → {:.6g} in {}", loss.front(), loss.back(), traces::counted(loss.size(), "step"));
}

// Every line; what a terminal would obey is shown instead.
std::string indented(std::string_view text)
{
    std::string lines = "  ";
    for (const char c : traces::harmless(text)) lines += c == '\n' ? std::string("\n  ") : std::string(1, c);
    return lines;
}

std::string resultText(const LiveRun& run, const std::optional<traces::StepFigures>& figures)
{
    const engine::RunResult& result = *run.result;
    std::vector<std::string> shapes;
    for (const auto& shape : result.outputs) shapes.push_back(fmt::format("{}", fmt::join(shape, "×")));

    const char* virtualTime = result.mode == engine::runModeText(engine::RunMode::Emulated) ? ", virtual time" : "";
    std::string text = fmt::format("{}; {} on {}, {}\n\n", shapeText(run.trace.info), result.mode, result.device,
                                   labelText(run.trace.info.label));
    text += fmt::format("  step            {} ({}{})\n", traces::formatDuration(result.stepNs), basisText(run),
                        virtualTime);
    text += fmt::format("  predicted step  {} (simulated from this run's median costs)\n",
                        traces::formatDuration(result.predictedStepNs));
    text +=
        fmt::format("  ideal step      {} (the same without hand-off cost)\n", traces::formatDuration(result.idealStepNs));
    text += fmt::format("  efficiency      {:.3f} (ideal step / step)\n", result.efficiency);
    text += throughputText(result.throughput);
    text += fmt::format("  loss            {}\n", lossText(result.loss));
    if (result.text) text += fmt::format("  tokens alone    {:.6g} (loss of whoever knows only how often each comes)\n", result.text->entropy);
    text += fmt::format("  output          {}\n", fmt::join(shapes, ", "));
    text += fmt::format("  gradient check  {}, largest difference {:.3g}\n", engine::gradientCheckText(result.gradientCheck),
                        result.gradientMaxAbsDiff);
    for (const std::string& note : run.trace.notes()) text += fmt::format("  note            {}\n", note);
    if (result.text) text += fmt::format("\nthe model wrote before\n{}\n\nand after\n{}\n", indented(result.text->before), indented(result.text->after));
    text += durationsText(run.trace, durationsOf(run.trace));
    if (!figures) return text;
    const std::string among = run.droppedSteps > 0 ? fmt::format("last {}, which stayed in memory", traces::counted(run.trace.steps().size(), "step"))
                                                   : "trace";
    text += fmt::format("\nstep {} of the {}:\n{}", figures->step.value, among, figuresText(run.trace, traces::StepIndex(run.trace), *figures));
    return text;
}

int report(const LiveRun& run, const Options& options)
{
    int code = kDone;
    if (run.result) {
        const std::optional<traces::StepFigures> figures = middleFigures(run.trace);
        code = print(options.json ? jsonText(resultJson(run, figures)) : resultText(run, figures));
        if (run.result->gradientCheck == engine::GradientCheck::Failed) {
            code = failed(Error{
                fmt::format("the gradients differ from the sequential model's by up to {:.3g}; this run did not compute "
                            "what the plan says",
                            run.result->gradientMaxAbsDiff)});
        }
    }
    if (run.failure) return failed(failureOf(*run.failure));
    if (run.state == engine::SessionState::Stopped) {
        return failed(Error{fmt::format("stopped; kept {}{}", traces::counted(run.slices, "event"),
                                        options.trace.empty() ? "" : " in " + options.trace)});
    }
    if (!run.result) return failed(Error{fmt::format("the run ended ({}) without a result", engine::stateText(run.state))});
    return code;
}

int runPlan(const Options& options)
{
    if (auto checked = checkTraceTarget(options.trace); !checked.ok()) return wrongUse(checked.error());
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return failed(opened.error());
    if (const auto& send = options.overrides.send; send && *send != "buffered")
        return wrongUse(Error{fmt::format("--send {}: a run hands over through buffers, and never waits in a send; simulate how the other kinds "
                                          "behave, or check a schedule with: stagecraft-cli validate FILE --send {}",
                                          *send, *send)});
    Expected<engine::Plan> changed = withOverrides(opened.value(), options.overrides);
    if (!changed.ok()) return wrongUse(changed.error());
    const Expected<engine::Plan> plan = withRunOptions(std::move(changed).value(), options);
    if (!plan.ok()) return wrongUse(plan.error());
    if (auto checked = engine::checkPlan(plan.value()); !checked.ok()) return refused(opened.value(), plan.value(), checked.error());

    const Expected<std::unique_ptr<engine::Session>> session = makeSession();
    if (!session.ok()) return failed(session.error());
    std::signal(SIGPIPE, SIG_IGN); // a reader that went away must not take the run's trace with it
    const bool asJournal = traces::traceFormOf(options.trace) == traces::TraceForm::Journal;
    Expected<LiveRun> run = follow(*session.value(), plan.value(),
                                   {.journal = asJournal ? options.trace : "",
                                    .progress = ::isatty(STDERR_FILENO) == 1,
                                    // a journal grows on the disk; the other forms are written from the whole trace
                                    .slices = options.trace.empty() || asJournal ? kSlicesInMemory : traces::RecentTrace::kEverything});
    if (!run.ok()) return failed(run.error());

    int saved = run.value().journalFault ? kFailed : kDone; // said when it happened
    if (!options.trace.empty() && !asJournal) {
        if (auto written = saveTraceTo(run.value().trace, plan.value(), options.trace); !written.ok())
            saved = failed(written.error());
    }
    if (const auto lost = run.value().trace.lostEvents(); lost > 0) // the notes were said as they came
        warn(fmt::format("the run: {} lost while it was recorded", traces::counted(lost, "event")));
    const int reported = report(run.value(), options);
    return reported == kDone ? saved : reported;
}

} // namespace

void addRun(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "run", "Really run a plan on LibTorch and print what was measured",
                             "stagecraft-cli run hello --steps 5\n"
                             "  stagecraft-cli run gpt-small --ranks 4 --mode emulated --trace run.strace --json");
    const auto options = std::make_shared<Options>();
    const auto text = [&verb](const char* name, Overrides::Text& target, const char* type, const char* help) {
        verb.add_option_function<std::string>(
                name, [&target](const std::string& value) { target = value; }, help)
            ->type_name(type);
    };
    verb.add_option("PLAN", options->plan, "Plan file or preset; it needs a model")->required();
    text("--mode", options->mode, "threads|emulated", "A thread per rank, or virtual ranks on virtual clocks");
    text("--device", options->device, "cpu", "Where tensors live");
    text("--steps", options->steps, "N", "Training steps");
    text("--check", options->check, "off|first|all", "On which steps gradients are compared with the sequential model's");
    text("--clip-norm", options->clipNorm, "X", "Gradients shrink to this norm of all of them together where it is larger; 0: they do not");
    text("--checkpoint", options->checkpoint, "DIR", "Folder that checkpoints are written to, after the last step and:");
    text("--checkpoint-every", options->checkpointEvery, "N", "After every so many steps as well");
    text("--resume", options->resume, "DIR", "Go on from a checkpoint: of one step, or the latest in a folder of several. --steps counts those before it too");
    text("--data", options->data, "SOURCE[:FILE]", "What it learns: synthetic, text (one ships with the program), text:FILE, idx:FILE or npy:FILE");
    text("--targets", options->targets, "FILE", "Targets or labels, for idx and npy");
    text("--tokens", options->tokens, "characters|bytes", "Of a text");
    verb.add_option("--trace", options->trace, traceTargetHelp())->type_name("FILE");
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return runPlan(*options); }; });
}

} // namespace stagecraft::cli
