// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/partition_rules.h"

#include "engine/model/layout.h"
#include "engine/model/tied.h"
#include "engine/plan/memory_partition.h"
#include "engine/plan/plan_words.h"
#include "engine/plan/refit.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::engine {

using traces::counted;

namespace {

Partition uniformPartition(int layers, int stages)
{
    Partition partition(static_cast<std::size_t>(stages), layers / stages);
    for (int more = layers % stages, s = stages - 1; more > 0; --more, --s) ++partition[static_cast<std::size_t>(s)];
    return partition;
}

Expected<Partition> balancedBy(const Plan& plan, double (*weightOf)(const LayerCounts&))
{
    std::vector<double> weight;
    for (const LayerCounts& layer : heldCounts(plan.model, static_cast<std::size_t>(plan.stages()))) weight.push_back(weightOf(layer));
    return balancedPartition(weight, plan.stages());
}

} // namespace

Expected<Partition> partitionByRule(const Plan& plan)
{
    const auto layers = static_cast<int>(plan.model.layers.size());
    const int stages = plan.stages();
    if (stages < 1 || stages > layers) return balancedBy(plan, [](const LayerCounts&) { return 1.0; }).error().in("partition");
    switch (plan.partitionRule) {
    case PartitionRule::Flops: return balancedBy(plan, [](const LayerCounts& layer) { return layer.forwardFlops + layer.backwardFlops; });
    case PartitionRule::Uniform: return uniformPartition(layers, stages);
    case PartitionRule::Parameters: return balancedBy(plan, [](const LayerCounts& layer) { return static_cast<double>(layer.parameters); });
    case PartitionRule::Memory: return memoryPartition(plan);
    case PartitionRule::Time: break;
    }
    return Error{"partition: \"time\" goes by measured costs, and there are none; take those of a run over, or take another rule"};
}

Expected<Plan> partitionedByTime(const Plan& measured, Plan plan)
{
    if (measured.costs.measured.empty())
        return Error{"\"time\" goes by measured costs, and the plan has none; take those of a run over, or ask the trace of one (whatif)"};
    if (measured.costs.measured.size() != static_cast<std::size_t>(measured.stages()))
        return Error{fmt::format("\"time\" goes by measured costs, and the plan has those of {} where it has {}",
                                 counted(measured.costs.measured.size(), "stage"), measured.stages())};
    Plan single = measured; // a stage for every layer
    single.pipeline.ranks = static_cast<int>(measured.model.layers.size());
    single.pipeline.chunks = 1;
    single.partition.assign(measured.model.layers.size(), 1);
    const Expected<Refit> layers = refitCosts(measured, single);
    if (!layers.ok()) return layers.error();
    std::vector<double> weight;
    for (const StageCosts& layer : layers.value().stages) weight.push_back(static_cast<double>(layer.forward + layer.backward));
    Expected<Partition> partition = balancedPartition(weight, plan.stages());
    if (!partition.ok()) return partition.error();

    plan.partition = std::move(partition).value();
    plan.partitionRule = PartitionRule::Flops; // it has one of its own now
    Expected<Refit> fitted = refitCosts(measured, plan);
    if (!fitted.ok()) return fitted.error();
    plan.costs.source = CostSource::Measured;
    plan.costs.measured = std::move(fitted.value().stages);
    plan.costs.measuredFrom = measured.costs.measuredFrom;
    if (!fitted.value().how.empty()) plan.costs.measuredFrom += (plan.costs.measuredFrom.empty() ? "" : "; ") + fitted.value().how;
    return plan;
}

std::optional<PartitionRule> partitionRuleOf(std::string_view word)
{
    for (const auto& [known, rule] : kPartitionWords)
        if (known == word) return rule;
    return std::nullopt;
}

std::string_view partitionRuleText(PartitionRule rule) { return wordOf(kPartitionWords, rule); }

Plan withLayers(Plan plan, Partition partition)
{
    const Expected<Partition> used = partitionOf(plan);
    if (!used.ok() || used.value() != partition) plan = withoutPartition(std::move(plan));
    plan.partition = std::move(partition);
    plan.partitionRule = PartitionRule::Flops; // one of its own needs none
    return plan;
}

void keepPartition(Plan& plan)
{
    if (plan.model.empty() || !plan.partition.empty() || plan.partitionRule != PartitionRule::Memory) return;
    Expected<Partition> used = partitionOf(plan);
    if (used.ok()) plan = withLayers(std::move(plan), std::move(used).value());
}

Expected<PartitionChoice> partitionChoice(const ModelSpec& model, std::string_view text)
{
    if (model.empty()) return Error{"there is no model to partition; leave it out, or add a model"};
    if (const std::optional<PartitionRule> rule = partitionRuleOf(text)) return PartitionChoice{*rule};
    Expected<Partition> partition = partitionOfLayout(model, text);
    if (partition.ok()) return PartitionChoice{std::move(partition).value()};
    std::vector<std::string_view> words;
    for (const auto& [word, meaning] : kPartitionWords) words.push_back(word);
    return Error{fmt::format("no rule ({}), and as a layout: {}", fmt::join(words, ", "), partition.error().message)};
}

Expected<Plan> withPartition(Plan plan, std::string_view ruleOrLayout)
{
    Expected<PartitionChoice> choice = partitionChoice(plan.model, ruleOrLayout);
    if (!choice.ok()) return choice.error();
    if (auto* partition = std::get_if<Partition>(&choice.value())) return withLayers(std::move(plan), std::move(*partition));
    const PartitionRule rule = std::get<PartitionRule>(choice.value());
    if (rule == PartitionRule::Time) return partitionedByTime(plan, plan);
    Plan ruled = plan;
    ruled.partition.clear();
    ruled.partitionRule = rule;
    const Expected<Partition> before = partitionOf(plan);
    const Expected<Partition> after = partitionOf(ruled);
    const bool same = before.ok() && after.ok() && before.value() == after.value();
    return same ? ruled : withoutPartition(std::move(ruled));
}

} // namespace stagecraft::engine
