// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/traffic.h"
#include "engine/simulate/simulate.h"
#include "app/cli/figures_json.h"
#include "app/cli/figures_text.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/simulation_tables.h"
#include "app/cli/trace_argument.h"
#include "app/cli/verbs.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string plan;
    Overrides overrides;
    std::string trace;
    std::optional<std::string> steps;
    bool json = false;
    bool waterfall = false;
};

int simulate(const Options& options)
{
    if (auto checked = checkTraceTarget(options.trace); !checked.ok()) return wrongUse(checked.error());
    const Expected<engine::Plan> opened = openPlan(options.plan, options.overrides);
    if (!opened.ok()) return failed(opened.error());
    const Expected<engine::Plan> plan = withOverrides(opened.value(), options.overrides);
    if (!plan.ok()) return wrongUse(plan.error());
    if (auto checked = engine::checkPlan(plan.value()); !checked.ok()) return refused(opened.value(), plan.value(), checked.error());
    int steps = 1;
    if (options.steps) {
        const Expected<long long> asked = parseWhole("--steps", *options.steps, 1, engine::kMostSimulatedSteps);
        if (!asked.ok()) return wrongUse(asked.error());
        steps = static_cast<int>(asked.value());
    }

    const Expected<engine::Schedule> schedule = engine::scheduleOf(plan.value());
    if (!schedule.ok()) return refused(opened.value(), plan.value(), schedule.error());
    // as many actions as the largest schedule has, for a trace keeps them all
    const auto actions = static_cast<long long>(schedule.value().actionCount());
    if (steps > 1 && steps * actions > engine::kMaxActions)
        return wrongUse(Error{fmt::format("--steps {}: a step of this plan has {} actions; at most {} are possible", steps, actions,
                                          traces::counted(std::max(1LL, engine::kMaxActions / actions), "step"))});
    const Expected<engine::CostTable> costs = engine::costsOf(plan.value());
    if (!costs.ok()) return failed(costs.error());
    Expected<traces::Trace> trace = engine::simulate(schedule.value(), costs.value(), {}, steps);
    if (!trace.ok()) return failed(trace.error());
    const std::vector<traces::StepFigures> all = traces::allStepFigures(trace.value());
    if (all.empty()) return failed(Error{"the schedule has no computing action"});
    const traces::StepFigures& figures = all.front();
    const traces::StepIndex index(trace.value());
    const std::vector<engine::LinkTraffic> links = engine::trafficOf(schedule.value(), costs.value());

    if (!options.trace.empty()) {
        if (auto saved = saveTraceTo(trace.value(), plan.value(), options.trace); !saved.ok()) return failed(saved.error());
    }
    const bool asynchronous = schedule.value().asynchronous();
    Json json;
    std::string text;
    if (options.json) {
        json = figuresJson(trace.value(), index, figures);
        if (asynchronous) addVersions(json["per_rank"], schedule.value());
        json["links"] = linksJson(links, figures.makespan);
        if (!plan.value().model.empty()) json["partition"] = partitionJson(plan.value());
        if (steps > 1) addSteps(json, trace.value(), all);
    } else {
        text = fmt::format("{}; simulated, costs {}\n\n{}", shapeText(trace.value().info), costs.value().origin,
                           figuresText(trace.value(), index, figures));
        if (asynchronous) text += "\n" + versionsText(schedule.value());
        if (!links.empty()) text += "\n" + linksText(links, figures.makespan);
        if (!plan.value().model.empty()) text += "\n" + partitionText(plan.value());
        if (steps > 1) text += "\n" + stepsText(all);
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
    verb.add_option("--steps", options->steps, "Steps one after the other; the figures are those of the first")->type_name("N");
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return simulate(*options); }; });
}

} // namespace stagecraft::cli
