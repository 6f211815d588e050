// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/statistics.h"

#include "traces/analysis/median.h"
#include "traces/analysis/pauses.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stagecraft::traces {

std::vector<ActionStatistics> actionStatistics(const Trace& trace, const StatisticsOptions& options)
{
    const Pauses pauses(trace.pauses());
    std::map<std::tuple<Stage, Flow, ActionKind>, std::vector<TimeNs>> durations;
    for (const Lane& lane : trace.lanes()) {
        if (lane.info().kind != LaneKind::Compute) continue;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const Work& work = lane.action(i).work;
            if (work.kind == ActionKind::None || lane.step(i) < options.from) continue;
            durations[{work.stage, work.flow, work.kind}].push_back(pauses.running({lane.begin(i), lane.end(i)}));
        }
    }
    std::vector<ActionStatistics> all;
    for (auto& [key, values] : durations) {
        std::sort(values.begin(), values.end());
        all.push_back({.stage = std::get<Stage>(key),
                       .flow = std::get<Flow>(key),
                       .kind = std::get<ActionKind>(key),
                       .count = values.size(),
                       .median = medianOf(values),
                       .p95 = values[(values.size() * 95 + 99) / 100 - 1], // nearest rank
                       .least = values.front(),
                       .most = values.back()});
    }
    return all;
}

std::optional<TimeNs> medianHandOff(const Trace& trace, const StatisticsOptions& options)
{
    const Pauses pauses(trace.pauses());
    std::vector<TimeNs> times;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& to = trace.lane(LaneId{l});
        for (const Edge& edge : trace.edgesOfLane(LaneId{l})) {
            const Lane& from = trace.lane(edge.from.lane);
            if (edge.kind != EdgeKind::Data || from.info().rank == to.info().rank || to.step(edge.to.index) < options.from)
                continue;
            times.push_back(pauses.running({from.end(edge.from.index), edge.ready}));
        }
    }
    if (times.empty()) return std::nullopt;
    return medianOf(std::move(times));
}

} // namespace stagecraft::traces
