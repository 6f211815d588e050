// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/steady_state.h"

#include "traces/analysis/median.h"
#include "traces/analysis/step_times.h"
#include "traces/analysis/step_view.h"

#include <algorithm>

namespace stagecraft::traces {
namespace {

bool goesForward(ActionKind kind) { return kind == ActionKind::Forward || kind == ActionKind::Overlap; }
bool goesBack(ActionKind kind)
{
    return kind == ActionKind::Backward || kind == ActionKind::InputGrad || kind == ActionKind::Overlap;
}

ActionKind kindAt(const Trace& trace, SliceRef ref) { return trace.lane(ref.lane).action(ref.index).kind(); }
TimeNs beginAt(const Trace& trace, SliceRef ref) { return trace.lane(ref.lane).begin(ref.index); }

// From the moment at which every rank works until the first has done its last action.
Interval allWork(const StepView& view)
{
    Interval all{view.span.begin, view.span.end};
    for (const RankView& rank : view.ranks) all = {std::max(all.begin, rank.span.begin), std::min(all.end, rank.span.end)};
    return all;
}

// While the rank goes both ways; a step without any backward has only one.
Interval bothWays(const Trace& trace, const RankView& rank, Interval within)
{
    const auto back = std::find_if(rank.slices.begin(), rank.slices.end(), [&](SliceRef ref) { return goesBack(kindAt(trace, ref)); });
    if (back == rank.slices.end()) return within;
    const auto last = std::find_if(rank.slices.rbegin(), rank.slices.rend(), [&](SliceRef ref) { return goesForward(kindAt(trace, ref)); });
    if (last == rank.slices.rend()) return {within.begin, within.begin};
    return {std::max(within.begin, beginAt(trace, *back)), std::min(within.end, trace.lane(last->lane).end(last->index))};
}

// Computing time of all ranks for their micro-batches.
TimeNs recurringWork(const Trace& trace, const StepView& view, const Pauses& pauses)
{
    TimeNs work = 0;
    for (const RankView& rank : view.ranks) {
        work += busyTime(trace, rank, pauses);
        for (const SliceRef ref : rank.slices)
            if (kindAt(trace, ref) == ActionKind::Optimizer)
                work -= pauses.running({beginAt(trace, ref), trace.lane(ref.lane).end(ref.index)});
    }
    return work;
}

} // namespace

std::optional<SteadyState> steadyState(const Trace& trace, Step step) { return steadyState(trace, StepIndex(trace), step); }

std::optional<SteadyState> steadyState(const Trace& trace, const StepIndex& index, Step step)
{
    const StepView view = viewOf(trace, index, step);
    if (!view.computes) return std::nullopt;
    const Pauses pauses(trace.pauses());
    const auto busiest = std::max_element(view.ranks.begin(), view.ranks.end(), [&](const RankView& a, const RankView& b) {
        return busyTime(trace, a, pauses) < busyTime(trace, b, pauses);
    });
    SteadyState steady;
    steady.bottleneck = busiest->rank;
    steady.phase = bothWays(trace, *busiest, allWork(view));

    std::vector<TimeNs> begins; // of the forwards in the phase
    std::size_t forwards = 0;   // in the step
    for (const SliceRef ref : busiest->slices) {
        if (!goesForward(kindAt(trace, ref))) continue;
        ++forwards;
        const TimeNs begin = beginAt(trace, ref);
        if (begin >= steady.phase.begin && begin < steady.phase.end) begins.push_back(begin);
    }
    const auto perMicroBatch = static_cast<std::size_t>(std::max(trace.info.chunks, 1)) * static_cast<std::size_t>(std::max(trace.info.slices, 1));
    const std::size_t whole = perMicroBatch * view.ranks.size();
    const std::size_t distance = begins.size() >= whole + perMicroBatch ? whole : perMicroBatch;
    if (begins.size() <= distance || forwards < perMicroBatch) return std::nullopt;
    steady.over = static_cast<int>(distance / perMicroBatch);

    std::vector<double> periods;
    for (std::size_t i = distance; i < begins.size(); ++i)
        periods.push_back(static_cast<double>(pauses.running({begins[i - distance], begins[i]})) / steady.over);
    steady.period = medianOf(std::move(periods));
    if (steady.period <= 0) return std::nullopt;
    steady.rate = 1e9 / steady.period;
    const double microbatches = static_cast<double>(forwards) / static_cast<double>(perMicroBatch);
    const double work = static_cast<double>(recurringWork(trace, view, pauses)) / static_cast<double>(view.ranks.size());
    steady.bubble = std::max(0.0, 1 - work / microbatches / steady.period);
    return steady;
}

std::optional<double> stepPeriod(const Trace& trace)
{
    const StepIndex index(trace);
    const Pauses pauses(trace.pauses());
    std::vector<TimeNs> busy;                // by rank
    std::vector<std::vector<TimeNs>> starts; // the same, then by step
    for (const Step step : index.steps()) {
        const StepView view = viewOf(trace, index, step);
        busy.resize(std::max(busy.size(), view.ranks.size()));
        starts.resize(busy.size());
        for (std::size_t r = 0; r < view.ranks.size(); ++r) {
            busy[r] += busyTime(trace, view.ranks[r], pauses);
            if (view.ranks[r].works) starts[r].push_back(view.ranks[r].span.begin);
        }
    }
    if (busy.empty()) return std::nullopt;
    const std::vector<TimeNs>& own = starts[static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin())];
    std::vector<double> periods;
    for (std::size_t i = stepsLeftOut(own.size()) + 1; i < own.size(); ++i)
        periods.push_back(static_cast<double>(pauses.running({own[i - 1], own[i]})));
    if (periods.empty()) return std::nullopt;
    return medianOf(std::move(periods));
}

} // namespace stagecraft::traces
