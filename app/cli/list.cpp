// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "engine/plan/plan_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string_view>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string what;
    bool json = false;
};

// A preset that cannot be read would be a fault of the build, which the tests catch; the list names it all the same.
Expected<std::vector<engine::Plan>> presets()
{
    std::vector<engine::Plan> plans;
    for (const engine::PresetPlan& preset : engine::presetPlans()) {
        Expected<engine::Plan> plan = engine::presetPlan(preset.name);
        if (!plan.ok()) return plan.error().in(preset.name);
        plans.push_back(std::move(plan).value());
        plans.back().name = preset.name;
    }
    return plans;
}

std::string chunksText(const engine::ScheduleFamily& family)
{
    return family.minChunks == family.maxChunks     ? fmt::format("{}", family.minChunks)
           : family.maxChunks >= engine::kMaxStages ? fmt::format("{} or more", family.minChunks)
                                                    : fmt::format("{} to {}", family.minChunks, family.maxChunks);
}

int listSchedules(bool asJson)
{
    Json json = Json::array();
    Table table({{"name"}, {"schedule"}, {"chunks"}, {"needs"}, {"idea"}});
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        json.push_back({{"name", family.name},
                        {"title", family.title},
                        {"idea", family.idea},
                        {"conditions", family.conditions},
                        {"source", family.source},
                        {"min_chunks", family.minChunks},
                        {"max_chunks", family.maxChunks}});
        table.add({family.name, family.title, chunksText(family), family.conditions, family.idea});
    }
    return print(asJson ? jsonText(json) : table.text(terminalWidth()));
}

std::vector<std::string_view> layerNames()
{
    std::vector<std::string_view> names;
    for (const engine::LayerType& type : engine::layerTypes()) names.push_back(type.name);
    return names;
}

int listModels(bool asJson)
{
    const auto plans = presets();
    if (!plans.ok()) return failed(plans.error());
    Json json = Json::array();
    Table table(
        {{"plan"}, {"layers", Align::Right}, {"parameters", Align::Right}, {"rows", Align::Right}, {"first to last layer"}});
    for (const engine::Plan& plan : plans.value()) {
        if (plan.model.empty()) continue;
        std::int64_t parameters = 0;
        Json layers = Json::array();
        for (const engine::LayerCounts& layer : engine::layerCounts(plan.model)) {
            parameters += layer.parameters;
            layers.push_back(layer.name);
        }
        table.add({plan.name, fmt::format("{}", layers.size()), fmt::format("{}", parameters),
                   fmt::format("{}", plan.model.microbatchRows),
                   fmt::format("{} … {}", layers.front().get<std::string>(), layers.back().get<std::string>())});
        json.push_back({{"name", plan.name},
                        {"layers", layers},
                        {"parameters", parameters},
                        {"microbatch_rows", plan.model.microbatchRows}});
    }
    if (asJson) return print(jsonText(json));
    return print(table.text(terminalWidth()) + fmt::format("\nLayers of a model: {}. stagecraft-cli list layers tells what each takes.\n", fmt::join(layerNames(), ", ")));
}

int listLayers(bool asJson)
{
    Json json = Json::array();
    Table table({{"layer"}, {"keys, in brackets those with a default"}, {"what it is"}});
    for (const engine::LayerType& type : engine::layerTypes()) {
        json.push_back({{"name", type.name}, {"keys", type.keys}, {"about", type.about}});
        table.add({std::string(type.name), std::string(type.keys), std::string(type.about)});
    }
    return print(asJson ? jsonText(json) : table.text(terminalWidth()));
}

int listPlans(bool asJson)
{
    const auto plans = presets();
    if (!plans.ok()) return failed(plans.error());
    Json json = Json::array();
    Table table({{"name"},
                 {"schedule"},
                 {"ranks", Align::Right},
                 {"chunks", Align::Right},
                 {"micro-batches", Align::Right},
                 {"runs"},
                 {"about"}});
    for (const engine::Plan& plan : plans.value()) {
        const engine::PipelineSpec& pipeline = plan.pipeline;
        table.add({plan.name, pipeline.schedule, fmt::format("{}", pipeline.ranks), fmt::format("{}", pipeline.chunks),
                   fmt::format("{}", pipeline.microbatches), plan.model.empty() ? "simulate only" : "yes",
                   plan.description});
        json.push_back({{"name", plan.name},
                        {"description", plan.description},
                        {"schedule", pipeline.schedule},
                        {"ranks", pipeline.ranks},
                        {"chunks", pipeline.chunks},
                        {"microbatches", pipeline.microbatches},
                        {"has_model", !plan.model.empty()}});
    }
    return print(asJson ? jsonText(json) : table.text(terminalWidth()));
}

int list(const Options& options)
{
    if (options.what == "schedules") return listSchedules(options.json);
    if (options.what == "models") return listModels(options.json);
    if (options.what == "layers") return listLayers(options.json);
    if (options.what == "plans") return listPlans(options.json);
    return wrongUse(Error{fmt::format("list {}: not known; schedules, models, layers or plans", options.what)});
}

} // namespace

void addList(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "list", "List what there is to choose from", "stagecraft-cli list schedules");
    const auto options = std::make_shared<Options>();
    verb.add_option("WHAT", options->what, "schedules, models (of the preset plans), layers (that a model is made of) or plans (the presets)")->required();
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return list(*options); }; });
}

} // namespace stagecraft::cli
