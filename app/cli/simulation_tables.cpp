// SPDX-License-Identifier: Apache-2.0
#include "app/cli/simulation_tables.h"

#include "app/cli/table.h"
#include "engine/model/layout.h"
#include "engine/plan/partition_rules.h"
#include "engine/schedule/weight_versions.h"
#include "traces/analysis/steady_state.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace stagecraft::cli {

Json linksJson(const std::vector<engine::LinkTraffic>& links, traces::TimeNs makespan)
{
    Json list = Json::array();
    for (const engine::LinkTraffic& link : links)
        list.push_back({{"from", link.from.value},
                        {"to", link.to.value},
                        {"between_nodes", link.betweenNodes},
                        {"messages", link.messages},
                        {"bytes", link.bytes},
                        {"mean_bytes_per_s", makespan > 0 ? static_cast<double>(link.bytes) * 1e9 / static_cast<double>(makespan) : 0},
                        {"required_bytes_per_s", link.requiredBytesPerSecond}});
    return list;
}

std::string linksText(const std::vector<engine::LinkTraffic>& links, traces::TimeNs makespan)
{
    const auto rate = [](double bytesPerSecond) {
        return bytesPerSecond > 0 ? traces::formatSize(static_cast<traces::Bytes>(bytesPerSecond)) + "/s" : std::string("not known");
    };
    Table table({{"link", Align::Left}, {"messages", Align::Right}, {"bytes", Align::Right}, {"mean", Align::Right}, {"to keep up", Align::Right}});
    for (const engine::LinkTraffic& link : links)
        table.add({fmt::format("rank {} → {}{}", link.from.value, link.to.value, link.betweenNodes ? ", other node" : ""),
                   fmt::format("{}", link.messages), link.bytes > 0 ? traces::formatSize(link.bytes) : "not known",
                   rate(makespan > 0 ? static_cast<double>(link.bytes) * 1e9 / static_cast<double>(makespan) : 0),
                   rate(link.requiredBytesPerSecond)});
    return table.text();
}

void addSteps(Json& json, const traces::Trace& trace, const std::vector<traces::StepFigures>& steps)
{
    for (const traces::StepFigures& step : steps)
        json["steps"].push_back({{"step", step.step.value}, {"begin_ns", step.span.begin}, {"makespan_ns", step.makespan}});
    if (const std::optional<double> period = traces::stepPeriod(trace)) json["step_period_ns"] = std::llround(*period);
}

std::string stepsText(const std::vector<traces::StepFigures>& steps)
{
    Table table({{"step", Align::Right}, {"begin", Align::Right}, {"makespan", Align::Right}, {"after the one before", Align::Right}});
    for (std::size_t i = 0; i < steps.size(); ++i)
        table.add({fmt::format("{}", steps[i].step.value), traces::formatDuration(steps[i].span.begin), traces::formatDuration(steps[i].makespan),
                   i == 0 ? "" : traces::formatDuration(steps[i].span.begin - steps[i - 1].span.begin)});
    return table.text();
}

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

Json partitionJson(const engine::Plan& plan)
{
    const engine::Partition partition = engine::partitionOf(plan).value();
    return {{"layers", partition},
            {"rule", plan.partition.empty() ? Json(engine::partitionRuleText(plan.partitionRule)) : Json()},
            {"layout", engine::layoutOf(plan.model, partition)}};
}

std::string partitionText(const engine::Plan& plan)
{
    const engine::Partition partition = engine::partitionOf(plan).value();
    const std::string rule = plan.partition.empty() ? fmt::format(" (by {})", engine::partitionRuleText(plan.partitionRule)) : "";
    return fmt::format("layers of each stage  {}{}\nlayout                {}\n", fmt::join(partition, ", "), rule, engine::layoutOf(plan.model, partition));
}

} // namespace stagecraft::cli
