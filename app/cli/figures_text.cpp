// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_text.h"

#include "app/cli/table.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::cli {

namespace {

using traces::formatDuration;
using traces::GapCause;

// Causes that some rank has, in their fixed order.
std::vector<std::size_t> causesPresent(const traces::StepFigures& figures)
{
    std::vector<std::size_t> present;
    for (std::size_t cause = 0; cause < traces::kGapCauseCount; ++cause) {
        const auto has = [&](const traces::RankFigures& rank) { return rank.idleByCause[cause] > 0; };
        if (std::any_of(figures.ranks.begin(), figures.ranks.end(), has)) present.push_back(cause);
    }
    return present;
}

} // namespace

std::string shapeText(const traces::TraceInfo& info)
{
    std::string text = info.schedule.empty() ? "" : info.schedule + ", ";
    text += traces::counted(info.ranks, "rank");
    if (info.chunks > 1) text += ", " + traces::counted(info.chunks, "chunk");
    if (info.microbatches > 0) text += ", " + traces::counted(info.microbatches, "micro-batch");
    return text;
}

std::string ranksText(const traces::StepFigures& figures)
{
    const std::vector<std::size_t> causes = causesPresent(figures);
    const bool withMemory =
        std::any_of(figures.ranks.begin(), figures.ranks.end(), [](const auto& rank) { return rank.peakMemory > 0; });

    std::vector<Column> columns{{"rank", Align::Right},     {"busy", Align::Right},
                                {"idle", Align::Right},     {"first start", Align::Right},
                                {"last end", Align::Right}, {"peak activations", Align::Right}};
    if (withMemory) columns.push_back({"peak memory", Align::Right});
    for (const std::size_t cause : causes) {
        columns.push_back({"idle: " + std::string(gapCauseText(static_cast<GapCause>(cause))), Align::Right});
    }

    Table table(std::move(columns));
    for (const traces::RankFigures& rank : figures.ranks) {
        // times within the step, which is what can be compared; a monotonic clock starts anywhere
        std::vector<std::string> row{fmt::format("{}", rank.rank.value),
                                     formatDuration(rank.busy),
                                     formatDuration(rank.idle),
                                     formatDuration(rank.firstStart - figures.span.begin),
                                     formatDuration(rank.lastEnd - figures.span.begin),
                                     fmt::format("{:.4g}", rank.peakActivations)};
        if (withMemory) row.push_back(traces::formatSize(rank.peakMemory));
        for (const std::size_t cause : causes) row.push_back(formatDuration(rank.idleByCause[cause]));
        table.add(std::move(row));
    }
    return table.text();
}

std::string figuresText(const traces::StepFigures& figures)
{
    Table table({{"", Align::Left}, {"", Align::Right}, {"", Align::Left}});
    const auto workNs = static_cast<traces::TimeNs>(std::llround(figures.work));
    table.add({"makespan", formatDuration(figures.makespan), "first start to last end over all ranks"});
    table.add({"work", formatDuration(workNs), "computing time of a rank, mean over the ranks"});
    table.add({"bubble_makespan", traces::formatPercent(figures.bubbleMakespan), "1 - work / makespan"});
    table.add(
        {"bubble_span", traces::formatPercent(figures.bubbleSpan),
         fmt::format("1 - work / largest span of a rank ({}); the Zero-Bubble papers'", formatDuration(figures.maxSpan))});
    table.add({"bubble_over_ideal", traces::formatPercent(figures.bubbleOverIdeal), "makespan / work - 1; Megatron-LM's"});
    std::string text = table.text();
    text.erase(0, text.find('\n') + 1); // this table has no titles
    return text + "\n" + ranksText(figures);
}

} // namespace stagecraft::cli
