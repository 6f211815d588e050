// SPDX-License-Identifier: Apache-2.0
#include "app/cli/device_time.h"
#include "app/cli/durations.h"
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/launch.h"
#include "app/cli/live_engine.h"
#include "app/cli/live_run.h"
#include "app/cli/machine_overrides.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/throughput.h"
#include "app/cli/trace_argument.h"
#include "app/cli/verbs.h"
#include "engine/data/dataset.h"
#include "engine/plan/gpu_list.h"
#include "engine/plan/plan_words.h"
#include "engine/plan/plan_json.h"
#include "traces/analysis/merge_ranks.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

constexpr int kMaxSteps = 1'000'000;
constexpr std::size_t kSlicesInMemory = std::size_t{1} << 14; // a few MB
constexpr std::string_view kPlan = "the plan";

struct Options {
    std::string plan;
    Overrides overrides;
    Overrides::Text mode, device, gpus, tracing, tf32, steps, check, data, targets, tokens;
    Overrides::Text activations, handoff, handoffDepth, transport, slowdown;
    Overrides::Text checkpoint, checkpointEvery, resume, clipNorm, lossScale;
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
        const auto known = engine::meaningOf(engine::kDataSourceWords, source);
        if (!known)
            return Error{fmt::format("--data {}: not known; synthetic, text, text:FILE, idx:FILE or npy:FILE", *options.data)};
        data = {.source = *known, .path = options.data->substr(std::min(colon + 1, options.data->size())), .targets = {}};
    }
    if (options.targets) data.targets = *options.targets;
    if (options.tokens) {
        const auto known = engine::meaningOf(engine::kTokenWords, *options.tokens);
        if (!known) return Error{fmt::format("--tokens {}: not known; characters or bytes", *options.tokens)};
        data.tokens = *known;
    }
    if (!options.data && !options.targets && !options.tokens) return plan;
    if (auto sound = engine::checkData(data, plan.model); !sound.ok()) return sound.error();
    return plan;
}

// The whole text, or false.
bool readNumber(const std::string& text, double& out)
{
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
    return code == std::errc{} && end == text.data() + text.size();
}

Expected<engine::Plan> withRunOptions(engine::Plan plan, const Options& options)
{
    using engine::CheckMode;
    using engine::DeviceKind;
    using engine::RunMode;
    if (options.mode) {
        const auto mode =
            choose("--mode", *options.mode, std::array{RunMode::Threads, RunMode::Emulated, RunMode::Processes}, engine::runModeText);
        if (!mode.ok()) return mode.error();
        plan.run.mode = mode.value();
    }
    if (options.device) {
        const auto device = choose("--device", *options.device, std::array{DeviceKind::Cpu, DeviceKind::Cuda}, engine::deviceText);
        if (!device.ok()) return device.error();
        plan.run.device = device.value();
        if (plan.run.device == DeviceKind::Cpu) plan.run.gpus.clear();
    }
    if (options.tracing) {
        using traces::TraceLevel;
        const auto level = choose("--tracing", *options.tracing, std::array{TraceLevel::HostSpans, TraceLevel::Events, TraceLevel::Kernels, TraceLevel::Api},
                                  +[](TraceLevel each) { return traces::traceLevelText(each); });
        if (!level.ok()) return level.error();
        plan.run.tracing = level.value();
    }
    if (options.tf32) {
        const auto tf32 = choose("--tf32", *options.tf32, std::array{false, true}, +[](bool on) { return std::string_view(on ? "on" : "off"); });
        if (!tf32.ok()) return tf32.error();
        plan.run.tf32 = tf32.value();
    }
    if (options.gpus) {
        Expected<std::vector<int>> gpus = engine::parseGpus(*options.gpus);
        if (!gpus.ok()) return gpus.error().in("--gpus");
        plan.run.gpus = std::move(gpus).value();
    }
    if (options.check) {
        const auto check = choose("--check", *options.check, std::array{CheckMode::Off, CheckMode::First, CheckMode::All},
                                  engine::checkModeText);
        if (!check.ok()) return check.error();
        plan.run.check = check.value();
    }
    if (options.handoff) {
        using engine::HandoffKind;
        const auto kind = choose("--handoff", *options.handoff,
                                 std::array{HandoffKind::Boxes, HandoffKind::Mutex, HandoffKind::Ring, HandoffKind::Semaphore},
                                 +[](HandoffKind k) { return engine::wordOf(engine::kHandoffWords, k); });
        if (!kind.ok()) return kind.error();
        plan.run.handoff = kind.value();
        if (kind.value() == HandoffKind::Boxes) plan.run.handoffDepth = 0;
    }
    if (options.transport) {
        using engine::Transport;
        const auto transport = choose("--transport", *options.transport, std::array{Transport::Auto, Transport::Nccl, Transport::Host},
                                      +[](Transport each) { return engine::wordOf(engine::kTransportWords, each); });
        if (!transport.ok()) return transport.error();
        plan.run.transport = transport.value();
    }
    if (options.handoffDepth) {
        const Expected<long long> depth = parseWhole("--handoff-depth", *options.handoffDepth, 0, 1 << 20);
        if (!depth.ok()) return depth.error();
        plan.run.handoffDepth = static_cast<int>(depth.value());
    }
    if (options.slowdown) {
        Expected<std::vector<double>> factors = parseFactors(*options.slowdown, "stage", {.least = 1, .most = engine::kMostSlowdown});
        if (!factors.ok()) return factors.error().in("--slowdown");
        plan.run.slowdown = std::move(factors).value();
    }
    if (options.activations) {
        using engine::ActivationAccount;
        const auto account = choose("--activations", *options.activations, std::array{ActivationAccount::Allocator, ActivationAccount::SavedTensors},
                                    +[](ActivationAccount a) { return engine::wordOf(engine::kActivationAccountWords, a); });
        if (!account.ok()) return account.error();
        plan.run.activations = account.value();
    }
    if (options.steps) {
        const Expected<long long> steps = parseWhole("--steps", *options.steps, 1, kMaxSteps);
        if (!steps.ok()) return steps.error();
        plan.run.steps = static_cast<int>(steps.value());
    }
    if (options.clipNorm && !(readNumber(*options.clipNorm, plan.run.clipNorm) && plan.run.clipNorm >= 0 && plan.run.clipNorm <= 1e30))
        return Error{fmt::format("--clip-norm {} is not allowed; a number from 0 (no clipping) to 1e+30", *options.clipNorm)};
    if (options.lossScale && !(readNumber(*options.lossScale, plan.run.lossScale) && engine::isLossScale(plan.run.lossScale)))
        return Error{fmt::format("--loss-scale {} is not allowed; a power of two from 1 to 2^60, such as 1024, which changes no bit of a gradient", *options.lossScale)};
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

// What micro-batches keep for their backwards, where the run was asked to tell it.
void addActivations(Json& json, const engine::RunResult& result)
{
    if (result.stageActivations.empty()) return;
    Json stages = Json::array();
    for (std::size_t s = 0; s < result.stageActivations.size(); ++s) {
        const engine::StageActivations& stage = result.stageActivations[s];
        stages.push_back({{"stage", s}, {"saved_bytes", stage.saved}, {"wgrad_bytes", stage.forWeights}, {"allocator_bytes", stage.booked}});
    }
    Json ranks = Json::array();
    for (std::size_t r = 0; r < result.rankActivations.size(); ++r) {
        const engine::RankActivations& rank = result.rankActivations[r];
        ranks.push_back({{"rank", r}, {"peak_bytes", rank.peak}, {"predicted_bytes", rank.predicted ? Json(*rank.predicted) : Json(nullptr)}});
    }
    json["activations"] = {{"per_stage", std::move(stages)}, {"per_rank", std::move(ranks)}};
}

std::string activationsText(const engine::RunResult& result)
{
    if (result.stageActivations.empty()) return {};
    std::string text = "\nactivations of a micro-batch    saved by autograd    until its weight gradient    booked by the allocator\n";
    for (std::size_t s = 0; s < result.stageActivations.size(); ++s) {
        const engine::StageActivations& stage = result.stageActivations[s];
        text += fmt::format("  stage {:<23}  {:>17}  {:>27}  {:>23}\n", s, traces::formatSize(stage.saved), traces::formatSize(stage.forWeights),
                            traces::formatSize(stage.booked));
    }
    text += "in flight, at most              measured             by the schedule\n";
    for (std::size_t r = 0; r < result.rankActivations.size(); ++r) {
        const engine::RankActivations& rank = result.rankActivations[r];
        text += fmt::format("  rank {:<24}  {:>17}  {:>17}\n", r, traces::formatSize(rank.peak),
                            rank.predicted ? traces::formatSize(*rank.predicted) : "recomputed");
    }
    return text;
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
            {"notes", run.trace.notes()},
            {"clocks", clocksJson(run.trace)}};
    json["throughput"] = throughputJson(result.throughput);
    if (const auto deviceTimes = traces::deviceTimes(run.trace); !deviceTimes.empty()) json["device_time"] = deviceTimeJson(deviceTimes);
    json["measured"] = durationsJson(run.trace, traces::durationsOf(run.trace, kHistogramIntervals))["actions"];
    if (result.text) {
        json["token_entropy"] = result.text->entropy;
        json["sample"] = {{"before", result.text->before}, {"after", result.text->after}};
    }
    addActivations(json, result);
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
    text += clocksText(run.trace);
    if (result.text) text += fmt::format("\nthe model wrote before\n{}\n\nand after\n{}\n", indented(result.text->before), indented(result.text->after));
    text += activationsText(result);
    text += durationsText(run.trace, traces::durationsOf(run.trace, kHistogramIntervals));
    if (const auto deviceTimes = traces::deviceTimes(run.trace); !deviceTimes.empty()) text += deviceTimeText(deviceTimes);
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

// The plan, or the exit code of what was said about it.
struct Asked {
    std::optional<engine::Plan> plan;
    int code = kDone;
    engine::Plan opened = {}; // before the options changed it; rank 0 of a team alone has it
};

// Ends a run that does not begin: wrong use where the plan that was opened could be run and the options alone keep it from that; a
// failure where a file or this machine has a part in it.
int notBegun(const Asked& asked, const Error& reason)
{
    const bool byOptions = !(*asked.plan == asked.opened) && couldBegin(asked.opened) && !couldBegin(*asked.plan);
    return byOptions ? wrongUse(reason) : failed(reason);
}

Asked askedPlan(const Options& options, const std::optional<Launch>& launch)
{
    if (auto checked = checkTraceTarget(options.trace); !checked.ok()) return {{}, wrongUse(checked.error())};
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return {{}, failed(opened.error())};
    if (const auto& send = options.overrides.send; send && *send != "buffered")
        return {{}, wrongUse(Error{fmt::format("--send {}: a run hands over through buffers, and never waits in a send; simulate how the other kinds "
                                               "behave, or check a schedule with: stagecraft-cli validate FILE --send {}",
                                               *send, *send)})};
    Expected<engine::Plan> changed = withOverrides(opened.value(), options.overrides);
    if (!changed.ok()) return {{}, wrongUse(changed.error())};
    Expected<engine::Plan> plan = withRunOptions(std::move(changed).value(), options);
    if (!plan.ok()) return {{}, wrongUse(plan.error())};
    if (auto checked = engine::checkPlan(plan.value()); !checked.ok()) return {{}, refused(opened.value(), plan.value(), checked.error())};
    if (launch && launch->size > 1 && plan.value().run.mode != engine::RunMode::Processes)
        return {{}, wrongUse(Error{fmt::format("{} has started {} processes, and in mode {} one runs the whole plan: give --mode processes, or start it "
                                               "without {}",
                                               launch->launcher(), launch->size, engine::runModeText(plan.value().run.mode), launch->launcher())})};
    if (auto ends = checkOrder(plan.value(), options.plan, options.overrides); !ends.ok()) return {{}, failed(ends.error())};
    return {std::move(plan).value(), kDone, opened.value()};
}

// The same for all of a team: what rank 0 was asked for. It alone has said what was wrong with it.
Asked sharedPlan(const Options& options, const std::optional<Launch>& launch, Team& team)
{
    if (team.rank() == 0) {
        Asked asked = askedPlan(options, launch);
        static_cast<void>(team.fromFirst(kPlan, asked.plan ? Expected<std::string>(engine::writePlan(*asked.plan)) : Error{fmt::format("{}", asked.code)}));
        return asked;
    }
    const Expected<std::string> text = team.fromFirst(kPlan, std::string());
    if (!text.ok()) return {{}, text.error().message == fmt::format("{}", kWrongUse) ? kWrongUse : kFailed};
    Expected<engine::Plan> plan = engine::readPlan(text.value());
    if (!plan.ok()) return {{}, failed(plan.error())};
    return {std::move(plan).value(), kDone};
}

// Of one rank: "run.strace" is "run.rank2.strace".
std::string partFile(const std::string& trace, int rank)
{
    const std::filesystem::path file = trace;
    std::string stem = file.filename().string();
    stem.resize(stem.size() - traces::kTraceExtensions[static_cast<std::size_t>(*traces::traceFormOf(file))].size());
    return (file.parent_path() / fmt::format("{}.rank{}.strace", stem, rank)).string();
}

// What each wrote while the run went on goes away once rank 0 has written it all.
int keepTeamsTrace(LiveRun& run, const engine::Plan& plan, const Options& options, Team& team)
{
    if (options.trace.empty()) return kDone;
    Expected<void> saved;
    if (team.rank() == 0) {
        if (run.trace.info.ranks > 1 && traces::isRankPart(run.trace)) saved = Error{"not all ranks could give their parts of the trace"};
        else saved = saveTraceTo(run.trace, plan, options.trace);
    }
    const Expected<void> all = team.agree("the trace", saved);
    const std::string own = partFile(options.trace, team.rank());
    if (all.ok()) {
        std::error_code ignored;
        std::filesystem::remove(own, ignored);
        return kDone;
    }
    if (!team.speaks()) return kFailed;
    std::string parts = partFile(options.trace, 0);
    parts.replace(parts.rfind(".rank0."), 7, ".rank*.");
    warn(fmt::format("the run's trace is not in one file; each rank has kept its part. Where they are: stagecraft-cli convert {} {}", parts, options.trace));
    return kFailed;
}

int runAlone(const Asked& asked, const Options& options)
{
    const engine::Plan& plan = *asked.plan;
    const Expected<std::unique_ptr<engine::Session>> session = makeSession();
    if (!session.ok()) return failed(session.error());
    const bool asJournal = traces::traceFormOf(options.trace) == traces::TraceForm::Journal;
    Expected<LiveRun> run = follow(*session.value(), plan,
                                   {.journal = asJournal ? options.trace : "",
                                    .progress = ::isatty(STDERR_FILENO) == 1,
                                    // a journal grows on the disk; the other forms are written from the whole trace
                                    .slices = options.trace.empty() || asJournal ? kSlicesInMemory : traces::RecentTrace::kEverything});
    if (!run.ok()) return notBegun(asked, run.error());

    int saved = run.value().journalFault ? kFailed : kDone; // said when it happened
    if (!options.trace.empty() && !asJournal) {
        if (auto written = saveTraceTo(run.value().trace, plan, options.trace); !written.ok()) saved = failed(written.error());
    }
    if (const auto lost = run.value().trace.lostEvents(); lost > 0) // the notes were said as they came
        warn(fmt::format("the run: {} lost while it was recorded", traces::counted(lost, "event")));
    const int reported = report(run.value(), options);
    if (run.value().failure && saved == kDone && !options.trace.empty()) warn(fmt::format("what ran until then is in {}", options.trace));
    return reported == kDone ? saved : reported;
}

int runInTeam(const engine::Plan& plan, const Options& options, Team& team)
{
    const bool first = team.rank() == 0;
    const std::unique_ptr<engine::Session> session = team.makeSession();
    Expected<LiveRun> run = follow(*session, plan,
                                   {.journal = options.trace.empty() ? "" : partFile(options.trace, team.rank()),
                                    .progress = first && ::isatty(STDERR_FILENO) == 1,
                                    // the whole is written from memory
                                    .slices = first && !options.trace.empty() ? traces::RecentTrace::kEverything : kSlicesInMemory,
                                    .notes = first,
                                    .agree = [&](const Expected<void>& opened) { return team.agree("the files of the trace", opened); }});
    if (!run.ok()) return team.speaks() ? failed(run.error()) : kFailed;
    int code = run.value().state == engine::SessionState::Finished ? kDone : kFailed;
    if (team.speaks()) code = report(run.value(), options);
    const int kept = keepTeamsTrace(run.value(), plan, options, team);
    return code == kDone ? kept : code;
}

int runPlan(const Options& options)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that went away must not take the run's trace with it
    const bool processes = options.mode == std::string(engine::runModeText(engine::RunMode::Processes));
    const Expected<std::optional<Launch>> found = findLaunch(processes ? LaunchFor::Processes : LaunchFor::AnyMode);
    if (!found.ok()) return wrongUse(found.error());
    const std::optional<Launch>& launch = found.value();
    if (!launch) {
        // what can be read but once is left to the program that runs the plan
        if (comesOnce(options.plan, options.overrides))
            if (auto entered = enterLiveEngine(); !entered.ok()) return failed(entered.error());
        const Asked asked = askedPlan(options, launch);
        return asked.plan ? runAlone(asked, options) : asked.code;
    }
    const Expected<std::unique_ptr<Team>> team = joinTeam(*launch);
    if (!team.ok()) return failed(team.error());
    const Asked asked = sharedPlan(options, launch, *team.value());
    const int code = asked.plan ? runInTeam(*asked.plan, options, *team.value()) : asked.code;
    team.value()->leave();
    return code;
}

} // namespace

void addRun(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "run", "Really run a plan on LibTorch and print what was measured",
                             "stagecraft-cli run hello --steps 5\n"
                             "  stagecraft-cli run gpt-small --ranks 4 --mode emulated --trace run.strace --json\n"
                             "  mpirun -np 2 stagecraft-cli run hello --mode processes\n"
                             "  torchrun --no-python --nproc-per-node 2 stagecraft-cli run hello --mode processes");
    const auto options = std::make_shared<Options>();
    const auto text = [&verb](const char* name, Overrides::Text& target, const char* type, const char* help) {
        verb.add_option_function<std::string>(
                name, [&target](const std::string& value) { target = value; }, help)
            ->type_name(type);
    };
    verb.add_option("PLAN", options->plan, "Plan file or preset; it needs a model")->required();
    text("--mode", options->mode, "threads|emulated|processes", "A thread per rank, virtual ranks on virtual clocks, or a process per rank, under mpirun or torchrun");
    text("--device", options->device, "cpu|cuda", "Where tensors live and actions compute");
    text("--gpus", options->gpus, "N,N,...", "Device cuda: of each rank the number of its GPU, or cpu; otherwise they are spread evenly");
    text("--tracing", options->tracing, "host|events|kernels|api", "How much is recorded beneath the actions, each level more than the one before: of GPUs their kernels and calls; on the CPU, with kernels or api, LibTorch's operators");
    text("--tf32", options->tf32, "on|off", "Device cuda: whether products may round float32 to 10 bits of mantissa, which is faster");
    text("--steps", options->steps, "N", "Training steps");
    text("--check", options->check, "off|first|all", "On which steps gradients are compared with the sequential model's");
    text("--loss-scale", options->lossScale, "X", "A power of two that the loss has in the backward, and that is taken off the gradients again");
    text("--clip-norm", options->clipNorm, "X", "Gradients shrink to this norm of all of them together where it is larger; 0: they do not");
    text("--checkpoint", options->checkpoint, "DIR", "Folder that checkpoints are written to, after the last step and:");
    text("--checkpoint-every", options->checkpointEvery, "N", "After every so many steps as well");
    text("--resume", options->resume, "DIR", "Go on from a checkpoint: of one step, or the latest in a folder of several. --steps counts those before it too");
    text("--data", options->data, "SOURCE[:FILE]", "What it learns: synthetic, text (one ships with the program), text:FILE, idx:FILE or npy:FILE");
    text("--targets", options->targets, "FILE", "Targets or labels, for idx and npy");
    text("--tokens", options->tokens, "characters|bytes", "Of a text");
    text("--activations", options->activations, "allocator|saved-tensors",
         "What tells the activations of a micro-batch: the allocator, or beside it what autograd saves");
    text("--transport", options->transport, "auto|nccl|host", "How tensors go from GPU to GPU (mode processes): by NCCL, or by way of the host");
    text("--handoff", options->handoff, "boxes|mutex|ring|semaphore", "How tensors go from thread to thread (mode threads)");
    text("--handoff-depth", options->handoffDepth, "N", "Tensors that may wait between two stages before their sender has to; 0: all");
    text("--slowdown", options->slowdown, "x,x,...", "One factor per stage: its actions take so many times as long, on purpose");
    verb.add_option("--trace", options->trace, traceTargetHelp())->type_name("FILE");
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return runPlan(*options); }; });
}

} // namespace stagecraft::cli
