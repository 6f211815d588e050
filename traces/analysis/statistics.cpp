// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/statistics.h"

#include "traces/analysis/median.h"
#include "traces/analysis/pauses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace stagecraft::traces {

namespace {

struct Duration {
    TimeNs time = 0;
    SliceRef slice{};
};

// Calls visit(work, duration) for all that counts.
template <class Visit>
void forEachDuration(const Trace& trace, const StatisticsOptions& options, const std::stop_token& stop, Visit visit)
{
    const Pauses pauses(trace.pauses());
    for (std::size_t l = 0; l < trace.laneCount() && !stop.stop_requested(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        if (lane.info().kind != LaneKind::Compute) continue;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const Work& work = lane.action(i).work;
            if (work.kind == ActionKind::None || lane.step(i) < options.from) continue;
            visit(work, Duration{pauses.running({lane.begin(i), lane.end(i)}), {LaneId{l}, static_cast<std::uint32_t>(i)}});
        }
    }
}

// The nearest rank: the least value that at least `percent` of all reach or stay below. Not for none.
std::size_t rankOf(std::size_t count, std::size_t percent) { return (count * percent + 99) / 100 - 1; }

ActionTimes timesOf(const Work& work, std::vector<Duration>& durations)
{
    std::stable_sort(durations.begin(), durations.end(), [](const Duration& a, const Duration& b) { return a.time < b.time; });
    std::vector<TimeNs> times;
    times.reserve(durations.size());
    for (const Duration& duration : durations) times.push_back(duration.time);
    ActionStatistics statistics{.stage = work.stage,
                                .flow = work.flow,
                                .kind = work.kind,
                                .count = times.size(),
                                .median = medianOf(times),
                                .lowerQuartile = times[rankOf(times.size(), 25)],
                                .upperQuartile = times[rankOf(times.size(), 75)],
                                .p95 = times[rankOf(times.size(), 95)],
                                .least = times.front(),
                                .most = times.back()};
    for (auto it = durations.rbegin(); it != durations.rend() && it->time > statistics.outlierFrom(); ++it)
        statistics.outliers.push_back(it->slice);
    return {std::move(statistics), std::move(times)};
}

} // namespace

std::vector<ActionTimes> actionTimes(const Trace& trace, const StatisticsOptions& options, const std::stop_token& stop)
{
    std::map<std::tuple<Stage, Flow, ActionKind>, std::vector<Duration>> durations;
    forEachDuration(trace, options, stop, [&](const Work& work, const Duration& duration) {
        durations[{work.stage, work.flow, work.kind}].push_back(duration);
    });
    std::vector<ActionTimes> all;
    for (auto& [key, values] : durations) {
        if (stop.stop_requested()) break;
        const auto& [stage, flow, kind] = key;
        all.push_back(timesOf({.kind = kind, .flow = flow, .stage = stage}, values));
    }
    return all;
}

std::vector<ActionStatistics> actionStatistics(const Trace& trace, const StatisticsOptions& options)
{
    std::vector<ActionStatistics> all;
    for (ActionTimes& action : actionTimes(trace, options)) all.push_back(std::move(action.statistics));
    return all;
}

Histogram histogramOf(std::vector<TimeNs> values, std::size_t mostIntervals)
{
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const TimeNs least = values.front();
    const TimeNs range = values.back() - least;
    const TimeNs quartiles = values[rankOf(values.size(), 75)] - values[rankOf(values.size(), 25)];
    const double rule = 2 * static_cast<double>(quartiles) / std::cbrt(static_cast<double>(values.size()));
    // so wide that the range takes no more than that many; a rule of no width leaves as many as are allowed
    const auto fewest = static_cast<TimeNs>(mostIntervals);
    const TimeNs atLeast = std::max({static_cast<TimeNs>(std::ceil(rule)), (range + fewest - 1) / fewest, TimeNs{1}});
    const TimeNs count = std::max((range + atLeast - 1) / atLeast, TimeNs{1});
    const TimeNs width = std::max((range + count - 1) / count, TimeNs{1}); // so that the last ends with the largest
    Histogram histogram{.from = least, .width = width, .counts = std::vector<std::size_t>(static_cast<std::size_t>(count))};
    for (const TimeNs value : values)
        ++histogram.counts[std::min(static_cast<std::size_t>((value - least) / width), histogram.counts.size() - 1)];
    return histogram;
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
