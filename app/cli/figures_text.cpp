// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_text.h"

#include "app/cli/table.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/rank_clocks.h"
#include "traces/analysis/replicas.h"
#include "traces/analysis/steady_state.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

// "0F1 to 0F4, 1F0 (until W)": micro-batches that follow each other on a stage as one.
std::string heldText(const traces::MemoryPeak& peak)
{
    const auto name = [](const traces::HeldActivations& one) {
        return toText(makeAction(traces::ActionKind::Forward, one.stage, one.microbatch, one.flow));
    };
    std::string text;
    for (std::size_t first = 0; first < peak.activations.size();) {
        std::size_t last = first;
        const auto follows = [&](const traces::HeldActivations& a, const traces::HeldActivations& b) {
            return a.flow == b.flow && a.stage == b.stage && a.forWeightGrad == b.forWeightGrad && a.microbatch.value + 1 == b.microbatch.value;
        };
        while (last + 1 < peak.activations.size() && follows(peak.activations[last], peak.activations[last + 1])) ++last;
        if (!text.empty()) text += ", ";
        text += name(peak.activations[first]);
        if (last > first) text += (last > first + 1 ? " to " : ", ") + name(peak.activations[last]);
        if (peak.activations[first].forWeightGrad) text += " (until W)";
        first = last + 1;
    }
    return text;
}

// Where the step's time went, along the chain that ends last.
std::string pathText(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures)
{
    const traces::Expected<traces::CriticalPath> found = traces::criticalPath(trace, index, figures.step);
    if (!found.ok()) return "";
    const traces::CriticalPath& path = found.value();
    if (path.links.empty()) return "the step takes no time";
    const auto most = std::max_element(path.ranks.begin(), path.ranks.end(),
                                       [](const traces::PathTimes& a, const traces::PathTimes& b) { return a.sum() < b.sum(); });
    return fmt::format("{} compute, {} transfer, {} wait; most of it, {}, on rank {}", formatDuration(path.total.compute),
                       formatDuration(path.total.transfer), formatDuration(path.total.wait), formatDuration(most->sum()),
                       most - path.ranks.begin());
}

// What makes up each rank's peak: the classes that some rank has, and of how many micro-batches the activations are.
std::string memoryText(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures)
{
    const std::vector<traces::MemoryPeak> peaks = traces::memoryPeaks(trace, index, figures.step);
    std::vector<std::size_t> classes;
    for (std::size_t c = 0; c < traces::kMemoryClassCount; ++c)
        if (std::any_of(peaks.begin(), peaks.end(), [&](const traces::MemoryPeak& peak) { return peak.byClass[c] > 0; })) classes.push_back(c);
    if (classes.empty()) return "";
    const bool limited = trace.info.memoryLimit > 0;

    std::vector<Column> columns{{"rank", Align::Right}, {"peak memory", Align::Right}, {"at", Align::Right}};
    for (const std::size_t c : classes) columns.push_back({std::string(memoryClassText(static_cast<traces::MemoryClass>(c))), Align::Right});
    if (limited) columns.push_back({"runs out at", Align::Right});
    columns.push_back({"activations of", Align::Left});
    Table table(std::move(columns));
    for (const traces::MemoryPeak& peak : peaks) {
        std::vector<std::string> row{fmt::format("{}", peak.rank.value), traces::formatSize(peak.bytes),
                                     formatDuration(peak.at - figures.span.begin)};
        for (const std::size_t c : classes) row.push_back(traces::formatSize(peak.byClass[c]));
        if (limited) row.push_back(peak.runsOut ? formatDuration(*peak.runsOut - figures.span.begin) : "-");
        row.push_back(heldText(peak));
        table.add(std::move(row));
    }
    std::string text = "\n" + table.text();
    if (limited) text += fmt::format("  a rank has {}\n", traces::formatSize(trace.info.memoryLimit));
    return text;
}

} // namespace

std::string shapeText(const traces::TraceInfo& info)
{
    std::string text = info.schedule.empty() ? "" : info.schedule + ", ";
    const int replicas = traces::replicasOf(info);
    if (replicas > 1) text += traces::counted(replicas, "replica") + " of ";
    text += traces::counted(replicas > 1 ? traces::ranksOfReplica(info) : info.ranks, "rank");
    if (info.chunks > 1) text += ", " + traces::counted(info.chunks, "chunk");
    if (info.microbatches > 0) text += ", " + traces::counted(info.microbatches, "micro-batch") + (replicas > 1 ? " each" : "");
    return text;
}

std::string figuresText(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures)
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
    if (const std::optional<traces::SteadyState> steady = traces::steadyState(trace, index, figures.step))
        table.add({"steady state", formatDuration(std::llround(steady->period)),
                   fmt::format("per micro-batch on rank {}, {:.4g} a second; bubble {}: what ranks idle in that time, on average", steady->bottleneck.value, steady->rate,
                               traces::formatPercent(steady->bubble))});
    table.add({"critical path", "", pathText(trace, index, figures)});
    std::string text = table.text();
    text.erase(0, text.find('\n') + 1); // this table has no titles
    return text + "\n" + ranksText(figures) + memoryText(trace, index, figures);
}

std::string waterfallText(const engine::Waterfall& waterfall)
{
    constexpr int kWidth = 32;
    const auto column = [&](traces::TimeNs at) {
        const double share = waterfall.total > 0 ? static_cast<double>(at) / static_cast<double>(waterfall.total) : 0;
        return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.25) * kWidth));
    };
    Table table({{"where the step went", Align::Left}, {"time", Align::Right}, {"of the step", Align::Right}, {"", Align::Left}});
    traces::TimeNs at = 0;
    for (std::size_t part = 0; part < engine::kWaterfallPartCount; ++part) {
        const traces::TimeNs bar = waterfall.bars[part];
        const std::size_t from = column(std::min(at, at + bar));
        const std::size_t to = column(std::max(at, at + bar));
        at += bar;
        const double share = waterfall.total > 0 ? static_cast<double>(bar) / static_cast<double>(waterfall.total) : 0;
        table.add({std::string(waterfallPartText(static_cast<engine::WaterfallPart>(part))),
                   (bar < 0 ? "-" : "") + formatDuration(std::abs(bar)), fmt::format("{:.1f} %", 100 * share),
                   std::string(from, ' ') + std::string(to - from, bar < 0 ? '-' : '#')});
    }
    table.add({waterfall.measured ? "step, as measured" : "step, as simulated", formatDuration(waterfall.total), "", std::string(column(at), '=')});
    return "\n" + table.text();
}

std::string clocksText(const traces::Trace& trace)
{
    std::string text;
    for (const traces::ClockSummary& clock : traces::clockSummaries(trace))
        if (!clock.shared) text += fmt::format("  clock of {}\n", traces::toText(clock));
    return text;
}

} // namespace stagecraft::cli
