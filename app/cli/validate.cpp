// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/verbs.h"
#include "engine/plan/plan.h"
#include "engine/schedule/validate.h"
#include "traces/base/text.h"
#include "traces/format/input_file.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

using traces::counted;

struct Options {
    std::string file;
    std::string send = "buffered";
    bool json = false;
};

Json reportJson(const engine::Schedule& schedule, const engine::ValidationReport& report)
{
    Json errors = Json::array();
    for (const engine::ScheduleFault& fault : report.errors) {
        errors.push_back({{"rank", fault.rank.value},
                          {"position", fault.position},
                          {"action", fault.action},
                          {"message", fault.message}});
    }
    Json deadlock; // null where there is none
    for (const engine::WaitingRank& waiting : report.deadlock) {
        deadlock.push_back({{"rank", waiting.rank.value},
                            {"position", waiting.position},
                            {"action", waiting.action},
                            {"waits_for", waiting.waitsFor}});
        if (!waiting.why.empty()) deadlock.back()["why"] = waiting.why;
    }
    Json json{{"legal", report.legal()}, {"errors", errors}, {"deadlock", deadlock}};
    if (const Expected<void> even = engine::checkEvenStages(schedule); !even.ok()) json["no_plan"] = even.error().message;
    return json;
}

Json unreadableJson(const Error& error)
{
    const Json fault{{"rank", -1}, {"position", -1}, {"action", ""}, {"message", error.message}};
    return {{"legal", false}, {"errors", Json::array({fault})}, {"deadlock", nullptr}};
}

std::string reportText(const std::string& file, const engine::Schedule& schedule, const engine::ValidationReport& report)
{
    if (report.legal()) {
        const Expected<void> even = engine::checkEvenStages(schedule);
        return fmt::format("{}: legal{}; {}, {}, {}, {}\n", file, even.ok() ? "" : "; plans cannot take it: " + even.error().message, counted(schedule.ranks, "rank"), counted(schedule.stages(), "stage"),
                           counted(schedule.microbatches, "micro-batch"), counted(schedule.actionCount(), "action"));
    }
    std::string text = fmt::format("{}: not legal\n", file);
    for (const engine::ScheduleFault& fault : report.errors) text += fmt::format("  {}\n", fault.message);
    if (!report.deadlock.empty()) {
        text += "  deadlock, each waits for the next:\n";
        for (const engine::WaitingRank& waiting : report.deadlock) {
            text += fmt::format("    rank {}, position {}: {} waits for {} on rank {}{}\n", waiting.rank.value, waiting.position,
                                waiting.action, waiting.waitsFor, waiting.waitsForRank.value,
                                waiting.why.empty() ? "" : ", because " + waiting.why);
        }
    }
    return text;
}

int validate(const Options& options)
{
    const std::optional<engine::SendMode> send = engine::sendModeOf(options.send);
    if (!send) return wrongUse(Error{fmt::format("--send {}: not known; buffered, rendezvous or channel", options.send)});
    const Expected<std::string> text = traces::readWholeFile(options.file);
    if (!text.ok()) return failed(text.error());
    const Expected<engine::Schedule> schedule = engine::parseSchedule(text.value());
    if (!schedule.ok()) {
        // a text that is no schedule is not legal either: whoever reads the JSON gets the reason there, too
        if (options.json) print(jsonText(unreadableJson(schedule.error())));
        return failed(schedule.error().in(options.file));
    }

    const engine::ValidationReport report =
        engine::validate(schedule.value(), {.send = *send});
    const int printed =
        print(options.json ? jsonText(reportJson(schedule.value(), report)) : reportText(options.file, schedule.value(), report));
    if (report.legal()) return printed;
    return failed(
        Error{fmt::format("{}: {}", options.file,
                          report.deadlock.empty() ? counted(report.faultCount, "fault") + " in the schedule"
                                                  : std::string("the schedule deadlocks"))});
}

} // namespace

void addValidate(CLI::App& program, Work& work)
{
    CLI::App& verb =
        addVerb(program, "validate", "Check a schedule's file: is it complete, in order, and free of deadlocks?",
                "stagecraft-cli validate my.schedule --send rendezvous");
    const auto options = std::make_shared<Options>();
    verb.add_option("FILE", options->file, "A schedule in its text form")->required();
    verb.add_option("--send", options->send,
                    "Do sends wait for their receiver (rendezvous), or do messages between two ranks stay in order (channel)? "
                    "An order can deadlock so that works buffered")
        ->type_name("buffered|rendezvous|channel")
        ->capture_default_str();
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return validate(*options); }; });
}

} // namespace stagecraft::cli
