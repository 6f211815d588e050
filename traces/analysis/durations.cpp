// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/durations.h"

#include "traces/analysis/step_times.h"

#include <algorithm>
#include <numeric>

namespace stagecraft::traces {

std::optional<StagePlace> placeOf(const TraceInfo& info, Stage stage, Flow flow)
{
    const std::vector<Rank>& ranks = flow == Flow::Up ? info.upStageToRank : info.stageToRank;
    const std::size_t at = index(stage);
    if (at >= ranks.size()) return std::nullopt;
    const auto before = std::count(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(at), ranks[at]);
    return StagePlace{ranks[at], static_cast<int>(before)};
}

Durations durationsOf(const Trace& trace, std::size_t mostIntervals, const std::stop_token& stop)
{
    Durations durations;
    StatisticsOptions options;
    const std::size_t leftOut = stepsLeftOut(trace.steps().size());
    durations.firstLeftOut = leftOut > 0;
    if (durations.firstLeftOut) options.from = trace.steps()[leftOut].step;
    TimeNs busy = 0;
    for (ActionTimes& action : actionTimes(trace, options, stop)) {
        DurationRow row{.statistics = std::move(action.statistics), .histogram = {}, .total = 0, .share = {}, .place = {}};
        row.total = std::accumulate(action.times.begin(), action.times.end(), TimeNs{0});
        if (isCompute(row.statistics.kind)) busy += row.total;
        row.histogram = histogramOf(std::move(action.times), mostIntervals);
        row.place = placeOf(trace.info, row.statistics.stage, row.statistics.flow);
        durations.rows.push_back(std::move(row));
    }
    for (DurationRow& row : durations.rows)
        if (busy > 0 && isCompute(row.statistics.kind)) row.share = static_cast<double>(row.total) / static_cast<double>(busy);
    durations.handOff = medianHandOff(trace, options);
    return durations;
}

} // namespace stagecraft::traces
