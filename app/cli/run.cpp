// SPDX-License-Identifier: Apache-2.0
#include "app/cli/launch.h"
#include "app/cli/live_engine.h"
#include "app/cli/live_run.h"
#include "app/cli/plan_argument.h"
#include "app/cli/run_options.h"
#include "app/cli/run_report.h"
#include "app/cli/trace_argument.h"
#include "app/cli/verbs.h"
#include "engine/plan/plan_json.h"
#include "traces/analysis/merge_ranks.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

constexpr std::size_t kSlicesInMemory = std::size_t{1} << 14; // a few MB
constexpr std::string_view kPlan = "the plan";
constexpr std::string_view kAsked = "what is asked for";

int report(const LiveRun& run, const RunOptions& options)
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
    if (run.state == engine::SessionState::Stopped && !run.ran) return failed(Error{"stopped before its first action"});
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
// `team`: of which this is rank 0; null where the process is alone.
int notBegun(const Asked& asked, const Error& reason, const Team* team = nullptr)
{
    const auto could = [team](const engine::Plan& plan) { return team != nullptr ? team->couldBegin(plan) : couldBegin(plan); };
    const bool byOptions = !(*asked.plan == asked.opened) && could(asked.opened) && !could(*asked.plan);
    return byOptions ? wrongUse(reason) : failed(reason);
}

Asked askedPlan(const RunOptions& options, const std::optional<Launch>& launch)
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

// One that came to another run's meeting point would carry out that run's plan, end well, and nobody would know.
void tellOtherWish(const RunOptions& options, const Launch& launch, Team& team)
{
    const Expected<std::string> first = team.fromFirst(kAsked, options.asked);
    if (!first.ok() || first.value() == options.asked) return;
    warn(fmt::format("rank {} was asked for '{}', and rank 0 for '{}', which all of them carry out{}", team.rank(), options.asked, first.value(),
                     launch.meeting ? "; two runs need a MASTER_PORT each" : ""));
}

// The same for all of a team: what rank 0 was asked for. It alone has said what was wrong with it.
Asked sharedPlan(const RunOptions& options, const std::optional<Launch>& launch, Team& team)
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

// An older file of the name is what it was.
constexpr std::string_view kNothingRan = "nothing ran, and no trace was written";

// What each wrote while the run went on goes away once rank 0 has written it all.
int keepTeamsTrace(LiveRun& run, const engine::Plan& plan, const RunOptions& options, Team& team)
{
    if (options.trace.empty()) return kDone;
    Expected<void> saved;
    if (team.rank() == 0) {
        if (run.trace.info.ranks > 1 && traces::isRankPart(run.trace)) saved = Error{"not all ranks could give their parts of the trace"};
        else if (run.ran) saved = saveTraceTo(run.trace, plan, options.trace);
    }
    const Expected<void> all = team.agree("the trace", saved);
    if (all.ok()) {
        std::error_code ignored;
        if (run.journalBegun) std::filesystem::remove(partFile(options.trace, team.rank()), ignored);
        if (!run.ran && team.rank() == 0) warn(kNothingRan);
        return kDone;
    }
    if (!team.speaks()) return kFailed;
    if (!run.ran) { // of the others it knows nothing any more
        warn(fmt::format("nothing ran on rank {}, and no trace was written", team.rank()));
        return kFailed;
    }
    std::string parts = partFile(options.trace, 0);
    parts.replace(parts.rfind(".rank0."), 7, ".rank*.");
    warn(fmt::format("the run's trace is not in one file; each rank has kept its part. Where they are: stagecraft-cli convert {} {}", parts, options.trace));
    return kFailed;
}

int runAlone(const Asked& asked, const RunOptions& options)
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
    if (!options.trace.empty() && !asJournal && run.value().ran) {
        if (auto written = saveTraceTo(run.value().trace, plan, options.trace); !written.ok()) saved = failed(written.error());
    }
    if (const auto lost = run.value().trace.lostEvents(); lost > 0) // the notes were said as they came
        warn(fmt::format("the run: {} lost while it was recorded", traces::counted(lost, "event")));
    const int reported = report(run.value(), options);
    if (!options.trace.empty() && !run.value().ran) warn(kNothingRan);
    else if (run.value().failure && saved == kDone && !options.trace.empty()) warn(fmt::format("what ran until then is in {}", options.trace));
    return reported == kDone ? saved : reported;
}

// The same in all processes of a run: what started them passes on the code of one, and not always that of rank 0, which alone knows.
int notBegunTogether(const Asked& asked, const Error& reason, Team& team)
{
    int own = kFailed;
    if (team.rank() == 0) own = notBegun(asked, reason, &team);
    else if (team.speaks()) failed(reason);
    const Expected<std::string> code = team.fromFirst("the exit code", fmt::format("{}", own));
    return code.ok() && code.value() == fmt::format("{}", kWrongUse) ? kWrongUse : kFailed;
}

int runInTeam(const Asked& asked, const RunOptions& options, Team& team)
{
    const engine::Plan& plan = *asked.plan;
    const bool first = team.rank() == 0;
    const std::unique_ptr<engine::Session> session = team.makeSession();
    Expected<LiveRun> run = follow(*session, plan,
                                   {.journal = options.trace.empty() ? "" : partFile(options.trace, team.rank()),
                                    .progress = first && ::isatty(STDERR_FILENO) == 1,
                                    // the whole is written from memory
                                    .slices = first && !options.trace.empty() ? traces::RecentTrace::kEverything : kSlicesInMemory,
                                    .notes = first,
                                    .agree = [&](const Expected<void>& opened) { return team.agree("the files of the trace", opened); }});
    if (!run.ok()) return notBegunTogether(asked, run.error(), team);
    int code = run.value().state == engine::SessionState::Finished ? kDone : kFailed;
    if (team.speaks()) code = report(run.value(), options);
    const int kept = keepTeamsTrace(run.value(), plan, options, team);
    return code == kDone ? kept : code;
}

int runPlan(const RunOptions& options)
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
    tellOtherWish(options, *launch, *team.value());
    const Asked asked = sharedPlan(options, launch, *team.value());
    const int code = asked.plan ? runInTeam(asked, options, *team.value()) : asked.code;
    if (const bool ownTerminal = launch->meeting && launch->meeting->byHand; ownTerminal && code != kDone && !team.value()->speaks())
        warn(fmt::format("rank {} has ended with the others; rank {} says why", team.value()->rank(), team.value()->speaker()));
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
    const auto options = std::make_shared<RunOptions>();
    addRunOptions(verb, *options);
    verb.callback([options, &verb, &work] {
        options->asked = askedText(verb);
        work = [options] { return runPlan(*options); };
    });
}

} // namespace stagecraft::cli
