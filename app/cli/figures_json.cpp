// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"

#include "traces/analysis/critical_path.h"
#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/rank_clocks.h"
#include "traces/analysis/replicas.h"
#include "traces/analysis/steady_state.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::cli {

namespace {

// A mean of whole nanoseconds is whole in most schedules; it is then written as such.
Json nanoseconds(double value)
{
    if (std::abs(value) < 9e15 && std::floor(value) == value) return static_cast<std::int64_t>(value);
    return value;
}

Json causesJson(const traces::RankFigures& rank)
{
    Json causes = Json::object();
    for (std::size_t cause = 0; cause < traces::kGapCauseCount; ++cause) {
        causes[std::string(traces::gapCauseKey(static_cast<traces::GapCause>(cause)))] = rank.idleByCause[cause];
    }
    return causes;
}

// "weight versions" -> "weight_versions"
std::string keyOf(std::string_view text)
{
    std::string key(text);
    std::replace(key.begin(), key.end(), ' ', '_');
    return key;
}

void addMemory(Json& json, const traces::Trace& trace, const traces::MemoryPeak& peak)
{
    const bool known = std::any_of(trace.memory().begin(), trace.memory().end(),
                                   [&](const traces::MemorySeries& series) { return series.rank == peak.rank; });
    Json classes = Json::object();
    for (std::size_t c = 0; c < traces::kMemoryClassCount; ++c)
        classes[keyOf(memoryClassText(static_cast<traces::MemoryClass>(c)))] = peak.byClass[c];
    Json held = Json::array();
    for (const traces::HeldActivations& one : peak.activations)
        held.push_back({{"forward", toText(makeAction(traces::ActionKind::Forward, one.stage, one.microbatch, one.flow))},
                        {"bytes", one.bytes},
                        {"until", one.forWeightGrad ? "weight gradient" : "backward"}});
    json["peak_memory_bytes"] = peak.bytes;
    json["peak_memory_ns"] = known ? Json(peak.at) : Json();
    json["peak_memory_by_class"] = known ? std::move(classes) : Json();
    json["peak_memory_held"] = known ? std::move(held) : Json();
    json["memory_limit_bytes"] = trace.info.memoryLimit > 0 ? Json(trace.info.memoryLimit) : Json();
    json["runs_out_ns"] = peak.runsOut ? Json(*peak.runsOut) : Json();
}

Json pathTimesJson(const traces::PathTimes& times)
{
    return {{"compute_ns", times.compute}, {"transfer_ns", times.transfer}, {"wait_ns", times.wait}};
}

Json pathJson(const traces::CriticalPath& path)
{
    Json json = pathTimesJson(path.total);
    json["links"] = path.links.size();
    Json ranks = Json::array();
    for (const traces::PathTimes& rank : path.ranks) ranks.push_back(pathTimesJson(rank));
    Json stages = Json::array();
    for (const traces::PathTimes& stage : path.stages) stages.push_back(pathTimesJson(stage));
    json["per_rank"] = std::move(ranks);
    json["per_stage"] = std::move(stages);
    return json;
}

Json steadyJson(const traces::SteadyState& steady)
{
    return {{"microbatch_period_ns", nanoseconds(steady.period)},
            {"microbatches_per_s", steady.rate},
            {"bubble", steady.bubble},
            {"bottleneck_rank", steady.bottleneck.value},
            {"begin_ns", steady.phase.begin},
            {"end_ns", steady.phase.end}};
}

} // namespace

Json ranksJson(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures)
{
    const std::vector<traces::MemoryPeak> peaks = traces::memoryPeaks(trace, index, figures.step);
    Json ranks = Json::array();
    for (std::size_t r = 0; r < figures.ranks.size(); ++r) {
        const traces::RankFigures& rank = figures.ranks[r];
        Json json{{"rank", rank.rank.value},
                  {"replica", traces::replicaOf(trace.info, rank.rank)},
                  {"busy_ns", rank.busy},
                  {"idle_ns", rank.idle},
                  {"first_start_ns", rank.firstStart},
                  {"last_end_ns", rank.lastEnd},
                  {"peak_activations", rank.peakActivations}};
        addMemory(json, trace, peaks[r]);
        json["idle_by_cause"] = causesJson(rank);
        ranks.push_back(std::move(json));
    }
    return ranks;
}

Json figuresJson(const traces::Trace& trace, const traces::StepIndex& index, const traces::StepFigures& figures)
{
    const std::optional<traces::SteadyState> steady = traces::steadyState(trace, index, figures.step);
    const traces::Expected<traces::CriticalPath> path = traces::criticalPath(trace, index, figures.step);
    return {{"schedule", trace.info.schedule},
            {"ranks", figures.ranks.size()},
            {"chunks", trace.info.chunks},
            {"microbatches", trace.info.microbatches},
            {"makespan_ns", figures.makespan},
            {"span_ns", figures.maxSpan},
            {"work_ns", nanoseconds(figures.work)},
            {"bubble_makespan", figures.bubbleMakespan},
            {"bubble_span", figures.bubbleSpan},
            {"bubble_over_ideal", figures.bubbleOverIdeal},
            {"steady_state", steady ? steadyJson(*steady) : Json()},
            {"critical_path", path.ok() ? pathJson(path.value()) : Json()},
            {"per_rank", ranksJson(trace, index, figures)}};
}

Json waterfallJson(const engine::Waterfall& waterfall)
{
    Json bars = Json::object();
    for (std::size_t part = 0; part < engine::kWaterfallPartCount; ++part)
        bars[std::string(waterfallPartKey(static_cast<engine::WaterfallPart>(part)))] = waterfall.bars[part];
    return {{"step_ns", waterfall.total}, {"measured", waterfall.measured}, {"bars", std::move(bars)}};
}

std::string jsonText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json clocksJson(const traces::Trace& trace)
{
    Json clocks = Json::array();
    for (const traces::ClockSummary& clock : traces::clockSummaries(trace))
        if (!clock.shared)
            clocks.push_back({{"rank", clock.rank.value},
                              {"host", clock.host},
                              {"offset_ns", clock.offset},
                              {"error_ns", clock.error},
                              {"drift_ppm", clock.driftPpm ? Json(*clock.driftPpm) : Json()}});
    return clocks;
}

} // namespace stagecraft::cli
