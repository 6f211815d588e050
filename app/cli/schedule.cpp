// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/verbs.h"
#include "engine/schedule/deepspeed.h"
#include "engine/schedule/lower.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string plan;
    Overrides overrides;
    bool comms = false;
    std::string order; // empty: PyTorch's, where asked for
    std::string form = "pytorch";
    std::string out;
};

Expected<std::string> textOf(const engine::Schedule& made, const Options& options, engine::LoweringRule rule)
{
    if (options.form == "deepspeed") return engine::deepSpeedText(made);
    const bool lower = (options.comms || !options.order.empty()) && !engine::hasCommunication(made);
    if (!lower) return engine::toText(made);
    const Expected<engine::Schedule> lowered = engine::lowerCommunication(made, rule);
    if (!lowered.ok()) return lowered.error();
    return engine::toText(lowered.value());
}

int schedule(const Options& options)
{
    const std::optional<engine::LoweringRule> rule =
        options.order.empty() ? engine::LoweringRule::PyTorch : engine::loweringRuleOf(options.order);
    if (!rule) return wrongUse(Error{fmt::format("--order {}: not known; pytorch, megatron or deferred", options.order)});
    if (options.form != "pytorch" && options.form != "deepspeed")
        return wrongUse(Error{fmt::format("--form {}: not known; pytorch or deepspeed", options.form)});
    if (options.form == "deepspeed" && !options.order.empty())
        return wrongUse(Error{"--order does not go with --form deepspeed, whose list has an order of its own; leave one of them out"});
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return failed(opened.error());
    const Expected<engine::Plan> plan = withOverrides(opened.value(), options.overrides);
    if (!plan.ok()) return wrongUse(plan.error());
    const Expected<engine::Schedule> made = engine::scheduleOf(plan.value());
    if (!made.ok()) return refused(opened.value(), plan.value(), made.error());
    const Expected<std::string> text = textOf(made.value(), options, *rule);
    const bool chosen = !options.order.empty() || options.form != "pytorch"; // one that does not go with the schedule
    if (!text.ok()) return chosen ? wrongUse(text.error()) : failed(text.error());
    if (options.out.empty()) return print(text.value());
    const Expected<void> written = traces::writeWholeFile(options.out, text.value());
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
    verb.add_option("--order", options->order,
                    "Where the sends and receives stand: as early as they can arrive (PyTorch), in Megatron-LM's pairs that are posted "
                    "together, or right before they are needed; with --comms or without")
        ->type_name("pytorch|megatron|deferred");
    verb.add_option("--form", options->form, "Text form; DeepSpeed's instruction lists are for 1f1b and forward-only")
        ->type_name("pytorch|deepspeed")
        ->capture_default_str();
    verb.add_option("--out", options->out, "Write to a file")->type_name("FILE");
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return schedule(*options); }; });
}

} // namespace stagecraft::cli
