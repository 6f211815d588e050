// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/model_edits.h"

#include "engine/model/layout.h"
#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_json.h"
#include "traces/base/text.h"
#include "ui/lab/quantities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::ui {

engine::Plan withModel(engine::Plan plan, const engine::ModelSpec& model)
{
    plan.model = model;
    plan.partition.clear();
    if (model.empty()) plan.partitionRule = engine::PartitionRule::Flops; // nothing is given out
    plan.costs.measured.clear();
    plan.costs.measuredFrom.clear();
    if (plan.costs.source == engine::CostSource::Measured || model.empty())
        plan.costs.source = model.empty() ? engine::CostSource::Assumed : engine::CostSource::Model;
    return plan;
}

bool trainsWeights(const engine::Plan& plan) { return plan.pipeline.schedule != "forward-only"; }

traces::Expected<engine::Partition> parseLayers(const engine::ModelSpec& model, std::string_view text)
{
    const std::string_view word = traces::trimmed(text);
    const bool layout = word.find_first_of("EtL|") == 0 || word.starts_with('(');
    return layout ? engine::partitionOfLayout(model, word) : parsePartition(text);
}

engine::Plan withTypedLayers(engine::Plan plan, const engine::Partition& partition)
{
    engine::Plan typed = plan;
    typed.partition = partition;
    typed.partitionRule = engine::PartitionRule::Flops;
    if (!engine::partitionOf(typed).ok()) return typed;
    if (!partition.empty()) return engine::withLayers(std::move(plan), partition);
    return engine::withPartition(std::move(plan), engine::partitionRuleText(engine::PartitionRule::Flops)).value();
}

std::string layoutInUse(const engine::Plan& plan)
{
    if (plan.model.empty() || !engine::checkModel(plan.model).ok()) return {};
    const traces::Expected<engine::Partition> used = engine::partitionOf(plan);
    return used.ok() ? engine::layoutOf(plan.model, used.value()) : std::string();
}

const std::vector<ModelChoice>& modelChoices()
{
    static const std::vector<ModelChoice> choices = [] {
        std::vector<ModelChoice> found;
        for (const engine::PresetPlan& preset : engine::presetPlans()) {
            traces::Expected<engine::Plan> plan = engine::readPlan(preset.json);
            if (plan.ok() && !plan.value().model.empty()) found.push_back({preset.name, plan.value().model});
        }
        return found;
    }();
    return choices;
}

std::string modelSummary(const engine::Plan& plan)
{
    if (plan.model.empty()) return "No model: times are given below; a run needs a model.";
    if (!engine::checkModel(plan.model).ok()) return {};
    std::int64_t parameters = 0;
    double forward = 0;
    for (const engine::LayerCounts& layer : engine::layerCounts(plan.model)) {
        parameters += layer.parameters;
        forward += layer.forwardFlops;
    }
    // More than an int: a million rows in each of a million micro-batches can be said.
    const std::int64_t batch = std::int64_t{plan.model.microbatchRows} * plan.pipeline.microbatches;
    std::vector<std::int64_t> output = engine::outputShape(plan.model, 1);
    output.front() = batch;
    return fmt::format("{}, {} parameters, {} forward per micro-batch. Batch {}, output {}.",
                       traces::counted(plan.model.layers.size(), "layer"), showCount(static_cast<double>(parameters)), showFlops(forward),
                       traces::counted(batch, "row"), fmt::join(output, "×"));
}

} // namespace stagecraft::ui
