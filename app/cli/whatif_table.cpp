// SPDX-License-Identifier: Apache-2.0
#include "app/cli/whatif_table.h"

#include "app/cli/table.h"
#include "traces/base/text.h"
#include "traces/base/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::cli {

namespace {

using engine::PipelineSpec;
using engine::WhatIfKind;
using engine::WhatIfRow;
using traces::counted;
using traces::formatDuration;

Json costsJson(const engine::Observed& observed)
{
    Json stages = Json::array();
    for (std::size_t s = 0; s < observed.plan.costs.measured.size(); ++s) {
        const engine::StageCosts& stage = observed.plan.costs.measured[s];
        stages.push_back({{"stage", s},
                          {"forward_ns", stage.forward},
                          {"backward_ns", stage.backward},
                          {"input_grad_ns", stage.inputGrad},
                          {"weight_grad_ns", stage.weightGrad},
                          {"overlap_ns", stage.overlap},
                          {"optimizer_ns", stage.optimizer}});
    }
    return {{"origin", observed.plan.costs.measuredFrom},
            {"steps", observed.steps},
            {"backward_split", std::string(backwardSplitKey(observed.split))},
            {"latency_ns", observed.plan.costs.latency},
            {"bandwidth_bytes_per_s", observed.plan.costs.bandwidth > 0 ? Json(observed.plan.costs.bandwidth) : Json()},
            {"stages", std::move(stages)}};
}

Json rowJson(const WhatIfRow& row)
{
    return {{"kind", std::string(whatIfKindKey(row.kind))},
            {"label", std::string(labelText(row.label))},
            {"schedule", row.pipeline.schedule},
            {"ranks", row.pipeline.ranks},
            {"chunks", row.pipeline.chunks},
            {"microbatches", row.pipeline.microbatches},
            {"slices", row.pipeline.slices},
            {"partition", row.partition.empty() ? Json() : Json(row.partition)},
            {"makespan_ns", row.step},
            {"speedup", row.speedup},
            {"bubble_makespan", row.bubbleMakespan},
            {"bubble_span", row.bubbleSpan},
            {"bubble_over_ideal", row.bubbleOverIdeal},
            {"efficiency", row.efficiency},
            {"peak_activations", row.peakActivations},
            {"peak_memory_bytes", row.peakMemory > 0 ? Json(row.peakMemory) : Json()},
            {"prediction_error", row.predictionError ? Json(*row.predictionError) : Json()},
            {"notes", row.notes}};
}

std::string titleOf(const WhatIfRow& row)
{
    switch (row.kind) {
    case WhatIfKind::Trace: return std::string(labelText(row.label));
    case WhatIfKind::Same: return "predicted, as it was";
    case WhatIfKind::Changed: return "predicted";
    case WhatIfKind::Performed: return std::string(labelText(row.label)) + ", run now";
    }
    return {};
}

std::string shapeOf(const PipelineSpec& pipeline, bool withSlices)
{
    std::string text = fmt::format("p={} v={} m={}", pipeline.ranks, pipeline.chunks, pipeline.microbatches);
    return withSlices ? text + fmt::format(" k={}", pipeline.slices) : text;
}

std::string rowsText(const std::vector<WhatIfRow>& rows)
{
    const bool withSlices = std::ranges::any_of(rows, [](const WhatIfRow& row) { return row.pipeline.slices > 1; });
    const bool withMemory = std::ranges::any_of(rows, [](const WhatIfRow& row) { return row.peakMemory > 0; });
    std::vector<Column> columns{{"", Align::Left}, {"schedule", Align::Left}, {"", Align::Left}};
    for (const char* title : {"step", "speed-up", "bubble_makespan", "bubble_span", "bubble_over_ideal", "efficiency", "peak activations"})
        columns.push_back({title, Align::Right});
    if (withMemory) columns.push_back({"peak memory", Align::Right});
    columns.push_back({"prediction error", Align::Right});
    Table table(std::move(columns));
    for (const WhatIfRow& row : rows) {
        std::vector<std::string> cells{titleOf(row),
                                       row.pipeline.schedule,
                                       shapeOf(row.pipeline, withSlices),
                                       formatDuration(row.step),
                                       fmt::format("{:.3f}", row.speedup),
                                       traces::formatPercent(row.bubbleMakespan),
                                       traces::formatPercent(row.bubbleSpan),
                                       traces::formatPercent(row.bubbleOverIdeal),
                                       fmt::format("{:.3f}", row.efficiency),
                                       fmt::format("{:.4g}", row.peakActivations)};
        if (withMemory) cells.push_back(row.peakMemory > 0 ? traces::formatSize(row.peakMemory) : "not known");
        cells.push_back(row.predictionError ? fmt::format("{:+.2f} %", 100 * *row.predictionError) : "");
        table.add(std::move(cells));
    }
    return table.text();
}

// Each note once, with the schedules that it is of.
std::string notesText(const WhatIf& told)
{
    std::string text;
    for (const std::string& note : told.notes) text += fmt::format("  note: {}\n", note);
    std::vector<std::pair<std::string, std::vector<std::string>>> byNote;
    for (const WhatIfRow& row : told.rows)
        for (const std::string& note : row.notes) {
            auto known = std::ranges::find(byNote, note, [](const auto& entry) -> const std::string& { return entry.first; });
            if (known == byNote.end()) known = byNote.insert(byNote.end(), {note, {}});
            if (std::ranges::find(known->second, row.pipeline.schedule) == known->second.end()) known->second.push_back(row.pipeline.schedule);
        }
    for (const auto& [note, schedules] : byNote) text += fmt::format("  note, {}: {}\n", fmt::join(schedules, ", "), note);
    for (const LeftOutPlan& plan : told.leftOut) text += fmt::format("  left out, {}: {}\n", plan.schedule, plan.reason);
    return text;
}

} // namespace

Json whatIfJson(const WhatIf& told)
{
    const engine::Observed& observed = told.observed;
    Json rows = Json::array();
    for (const WhatIfRow& row : told.rows) rows.push_back(rowJson(row));
    Json leftOut = Json::array();
    for (const LeftOutPlan& plan : told.leftOut) leftOut.push_back({{"schedule", plan.schedule}, {"reason", plan.reason}});
    return {{"label", std::string(labelText(observed.label))},
            {"step", observed.step.value},
            {"costs", costsJson(observed)},
            {"rows", std::move(rows)},
            {"left_out", std::move(leftOut)},
            {"notes", told.notes}};
}

std::string whatIfText(const WhatIf& told)
{
    const engine::Observed& observed = told.observed;
    const engine::CostSpec& costs = observed.plan.costs;
    std::string text = fmt::format("{}: costs are the {} over {}, transfers take {}{}\n\n", told.file, costs.measuredFrom, counted(observed.steps, "step"),
                                   formatDuration(costs.latency),
                                   costs.bandwidth > 0 ? fmt::format(" and the time for their bytes at {}", traces::formatBandwidth(costs.bandwidth)) : "");
    text += rowsText(told.rows);
    text += "\n  the first row is step " + fmt::format("{}", observed.step.value) +
            " of the trace; speed-up: micro-batches per time against it; efficiency: the step without hand-off costs, simulated, over the step\n";
    return text + notesText(told);
}

} // namespace stagecraft::cli
