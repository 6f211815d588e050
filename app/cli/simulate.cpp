// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/simulate.h"
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/table.h"
#include "app/cli/trace_argument.h"
#include "app/cli/verbs.h"
#include "engine/schedule/weight_versions.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string plan;
    Overrides overrides;
    std::string trace;
    bool json = false;
    bool waterfall = false;
};

void addVersions(Json& ranks, const engine::Schedule& schedule)
{
    const std::vector<engine::StageVersions> stages = engine::weightVersions(schedule);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const engine::StageVersions rank = engine::versionsOfRank(schedule, stages, traces::Rank{r});
        ranks[r]["weight_versions"] = rank.kept;
        ranks[r]["staleness"] = rank.staleness;
    }
}

std::string versionsText(const engine::Schedule& schedule)
{
    const std::vector<engine::StageVersions> stages = engine::weightVersions(schedule);
    Table table({{"rank", Align::Right}, {"weight versions", Align::Right}, {"staleness (updates)", Align::Right}});
    for (int r = 0; r < schedule.ranks; ++r) {
        const engine::StageVersions rank = engine::versionsOfRank(schedule, stages, traces::Rank{r});
        table.add({fmt::format("{}", r), fmt::format("{}", rank.kept), fmt::format("{}", rank.staleness)});
    }
    return fmt::format("asynchronous, an update of the weights after every {}:\n{}",
                       schedule.microbatchesPerUpdate == 1 ? "micro-batch" : traces::counted(schedule.microbatchesPerUpdate, "micro-batch"),
                       table.text());
}

int simulate(const Options& options)
{
    if (auto checked = checkTraceTarget(options.trace); !checked.ok()) return wrongUse(checked.error());
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return failed(opened.error());
    const Expected<engine::Plan> plan = withOverrides(opened.value(), options.overrides);
    if (!plan.ok()) return wrongUse(plan.error());
    if (auto checked = engine::checkPlan(plan.value()); !checked.ok()) return failed(checked.error());

    const Expected<engine::Schedule> schedule = engine::scheduleOf(plan.value());
    if (!schedule.ok()) return failed(schedule.error());
    const Expected<engine::CostTable> costs = engine::costsOf(plan.value());
    if (!costs.ok()) return failed(costs.error());
    Expected<traces::Trace> trace = engine::simulate(schedule.value(), costs.value());
    if (!trace.ok()) return failed(trace.error());
    const Expected<traces::StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) return failed(figures.error());

    if (!options.trace.empty()) {
        if (auto saved = saveTraceTo(trace.value(), plan.value(), options.trace); !saved.ok()) return failed(saved.error());
    }
    const bool asynchronous = schedule.value().asynchronous();
    Json json;
    std::string text;
    if (options.json) {
        json = figuresJson(trace.value(), figures.value());
        if (asynchronous) addVersions(json["per_rank"], schedule.value());
    } else {
        text = fmt::format("{}; simulated, costs {}\n\n{}{}", shapeText(trace.value().info), costs.value().origin,
                           figuresText(trace.value(), figures.value()), asynchronous ? "\n" + versionsText(schedule.value()) : "");
    }
    if (options.waterfall) {
        const Expected<engine::Waterfall> waterfall = engine::waterfallOf(schedule.value(), costs.value());
        if (!waterfall.ok()) return failed(waterfall.error());
        if (options.json) json["waterfall"] = waterfallJson(waterfall.value());
        else text += waterfallText(waterfall.value());
    }
    return print(options.json ? jsonText(json) : text);
}

} // namespace

void addSimulate(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "simulate", "Simulate a plan and print the figures of its step",
                             "stagecraft-cli simulate --schedule gpipe --ranks 4 --microbatches 8 --latency 500us --json\n"
                             "  stagecraft-cli simulate gpt-small --ranks 4 --trace out.json");
    const auto options = std::make_shared<Options>();
    verb.add_option("PLAN", options->plan,
                    "Plan file or preset; without it: 1f1b, 4 ranks, 8 micro-batches, forward 1 ms, backward 2 ms");
    verb.add_option("--trace", options->trace, traceTargetHelp())->type_name("FILE");
    verb.add_flag("--waterfall", options->waterfall,
                  "Also where the step's time went: ideal work, structure of the schedule, imbalance, communication, jitter; takes "
                  "four more simulations");
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return simulate(*options); }; });
}

} // namespace stagecraft::cli
