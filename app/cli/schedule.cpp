// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/verbs.h"
#include "engine/schedule/lower.h"
#include "traces/format/output_file.h"

#include <memory>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string plan;
    Overrides overrides;
    bool comms = false;
    std::string out;
};

int schedule(const Options& options)
{
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return failed(opened.error());
    const Expected<engine::Plan> plan = withOverrides(opened.value(), options.overrides);
    if (!plan.ok()) return wrongUse(plan.error());
    Expected<engine::Schedule> made = engine::scheduleOf(plan.value());
    if (made.ok() && options.comms && !engine::hasCommunication(made.value()))
        made = engine::lowerCommunication(made.value());
    if (!made.ok()) return failed(made.error());

    const std::string text = engine::toText(made.value());
    if (options.out.empty()) return print(text);
    const Expected<void> written = traces::writeWholeFile(options.out, text);
    return written.ok() ? kDone : failed(written.error());
}

} // namespace

void addSchedule(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "schedule", "Print a plan's schedule: a line per rank, in the order of execution",
                             "stagecraft-cli schedule --schedule interleaved --ranks 4 --chunks 2 --comms");
    const auto options = std::make_shared<Options>();
    verb.add_option("PLAN", options->plan, "Plan file or preset");
    verb.add_flag("--comms", options->comms, "With the sends and receives between ranks")->disable_flag_override();
    verb.add_option("--out", options->out, "Write to a file")->type_name("FILE");
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return schedule(*options); }; });
}

} // namespace stagecraft::cli
