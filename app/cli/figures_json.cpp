// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"

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

} // namespace

Json ranksJson(const traces::StepFigures& figures)
{
    Json ranks = Json::array();
    for (const traces::RankFigures& rank : figures.ranks) {
        ranks.push_back({{"rank", rank.rank.value},
                         {"busy_ns", rank.busy},
                         {"idle_ns", rank.idle},
                         {"first_start_ns", rank.firstStart},
                         {"last_end_ns", rank.lastEnd},
                         {"peak_activations", rank.peakActivations},
                         {"peak_memory_bytes", rank.peakMemory},
                         {"idle_by_cause", causesJson(rank)}});
    }
    return ranks;
}

Json figuresJson(const traces::TraceInfo& info, const traces::StepFigures& figures)
{
    return {{"schedule", info.schedule},
            {"ranks", figures.ranks.size()},
            {"chunks", info.chunks},
            {"microbatches", info.microbatches},
            {"makespan_ns", figures.makespan},
            {"span_ns", figures.maxSpan},
            {"work_ns", nanoseconds(figures.work)},
            {"bubble_makespan", figures.bubbleMakespan},
            {"bubble_span", figures.bubbleSpan},
            {"bubble_over_ideal", figures.bubbleOverIdeal},
            {"per_rank", ranksJson(figures)}};
}

std::string jsonText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

} // namespace stagecraft::cli
