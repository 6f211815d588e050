// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/steady_state.h"

#include "traces/analysis/median.h"
#include "traces/analysis/step_times.h"
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

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

bool recurs(ActionKind kind) { return isCompute(kind) && kind != ActionKind::Optimizer; }

// Computing time of a rank within an interval; where its compute lanes overlap, shared time counts once.
TimeNs busyWithin(const Trace& trace, const RankView& rank, Interval within, const Pauses& pauses)
{
    TimeNs busy = 0;
    TimeNs done = within.begin;
    for (const SliceRef ref : rank.slices) {
        if (!isCompute(kindAt(trace, ref))) continue;
        const Interval fresh{std::max(beginAt(trace, ref), done), std::min(trace.lane(ref.lane).end(ref.index), within.end)};
        if (fresh.end <= fresh.begin) continue;
        busy += pauses.running(fresh);
        done = fresh.end;
    }
    return busy;
}

// What a rank does in the phase, but for updates, by begin.
std::vector<SliceRef> phaseOf(const Trace& trace, const RankView& rank, Interval phase)
{
    std::vector<SliceRef> found;
    for (const SliceRef ref : rank.slices)
        if (recurs(kindAt(trace, ref)) && beginAt(trace, ref) >= phase.begin && beginAt(trace, ref) < phase.end) found.push_back(ref);
    return found;
}

// Where all ranks do the same again after some micro-batches: the same actions in the same order, of micro-batches further on by one
// number in each direction, each later by the same time.
class Repetition {
public:
    Repetition(const Trace& trace, const Pauses& pauses, std::size_t perMicroBatch) : trace_(trace), pauses_(pauses), perMicroBatch_(perMicroBatch) {}

    // The longest part of the phase in which it holds; `time` is how much later, but for a share of it.
    std::optional<Interval> longest(const std::vector<std::vector<SliceRef>>& ranks, Interval phase, std::size_t microbatches, double time, double tolerance)
    {
        shift_ = {};
        std::vector<Interval> broken; // from an action to what should have been it again
        std::vector<std::size_t> distances; // in actions, by rank
        for (const std::vector<SliceRef>& rank : ranks) {
            const std::optional<std::size_t> distance = distanceOf(rank, microbatches * perMicroBatch_);
            if (!distance) return std::nullopt;
            distances.push_back(*distance);
            std::size_t faults = 0;
            for (std::size_t i = 0; i + *distance < rank.size(); ++i) {
                const SliceRef one = rank[i];
                const SliceRef again = rank[i + *distance];
                const Interval between{beginAt(trace_, one), beginAt(trace_, again)};
                const bool inTime = std::abs(static_cast<double>(pauses_.running(between)) - time) <= tolerance * time + 1;
                if (inTime && isSame(trace_.lane(one.lane).action(one.index), trace_.lane(again.lane).action(again.index))) continue;
                broken.push_back(between);
                if (2 * ++faults > rank.size()) return std::nullopt;
            }
        }
        const Interval part = longestWithout(std::move(broken), phase);
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            const auto before = [&](SliceRef ref, TimeNs at) { return beginAt(trace_, ref) < at; };
            const auto begin = std::lower_bound(ranks[r].begin(), ranks[r].end(), part.begin, before);
            const auto end = std::lower_bound(begin, ranks[r].end(), part.end, before);
            if (2 * (end - begin) < 3 * static_cast<std::ptrdiff_t>(distances[r])) return std::nullopt; // nobody saw it repeat
            if (!isWhole({begin, begin + static_cast<std::ptrdiff_t>(distances[r])})) return std::nullopt;
        }
        return part;
    }

private:
    // How many actions it takes in the middle of the phase to come so many forwards further.
    [[nodiscard]] std::optional<std::size_t> distanceOf(const std::vector<SliceRef>& rank, std::size_t forwards) const
    {
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < rank.size(); ++i)
            if (goesForward(kindAt(trace_, rank[i]))) places.push_back(i);
        if (places.size() <= forwards) return std::nullopt;
        const std::size_t first = (places.size() - forwards) / 2;
        return places[first + forwards < places.size() ? first + forwards : places.size() - 1] - places[first];
    }

    // What goes forward in a period comes back in it, weight gradients included: else they pile up, and it cannot go on for ever.
    [[nodiscard]] bool isWhole(std::span<const SliceRef> period) const
    {
        std::size_t forwards = 0;
        std::size_t inputs = 0;
        std::size_t weights = 0;
        for (const SliceRef ref : period) {
            const Action& action = trace_.lane(ref.lane).action(ref.index);
            for (const ActionKind kind : {action.kind(), action.partner.kind}) {
                if (kind == ActionKind::Forward || (kind == ActionKind::Overlap)) ++forwards;
                if (kind == ActionKind::Backward || kind == ActionKind::InputGrad) ++inputs;
                if (kind == ActionKind::Backward || kind == ActionKind::WeightGrad) ++weights;
            }
        }
        return (inputs == 0 && weights == 0) || (forwards == inputs && forwards == weights);
    }

    // The longest part of the phase that holds none of the intervals whole.
    static Interval longestWithout(std::vector<Interval> broken, Interval phase)
    {
        std::sort(broken.begin(), broken.end(), [](const Interval& a, const Interval& b) { return a.end < b.end; });
        Interval best{phase.begin, phase.begin};
        TimeNs begin = phase.begin;
        for (const Interval& each : broken) {
            if (each.end - begin > best.length()) best = {begin, each.end};
            begin = std::max(begin, each.begin + 1);
        }
        return phase.end - begin > best.length() ? Interval{begin, phase.end} : best;
    }

    bool isSame(const Action& one, const Action& again) { return isSame(one.work, again.work) && isSame(one.partner, again.partner); }
    bool isSame(const Work& one, const Work& again)
    {
        if (one.kind != again.kind || one.stage != again.stage || one.flow != again.flow) return false;
        if (one.microbatch == kNoMicroBatch || again.microbatch == kNoMicroBatch) return one.microbatch == again.microbatch;
        std::int32_t& shift = shift_[static_cast<std::size_t>(one.flow)];
        if (shift == 0) shift = again.microbatch.value - one.microbatch.value;
        return shift > 0 && again.microbatch.value - one.microbatch.value == shift;
    }

    const Trace& trace_;
    const Pauses& pauses_;
    std::size_t perMicroBatch_;
    std::array<std::int32_t, 3> shift_{}; // by direction; 0: not known yet
};

class Search {
public:
    Search(const Trace& trace, const StepView& view)
        : trace_(trace), view_(view), pauses_(trace.pauses()),
          perMicroBatch_(static_cast<std::size_t>(std::max(trace.info.chunks, 1)) * static_cast<std::size_t>(std::max(trace.info.slices, 1)))
    {
        std::vector<TimeNs> busy;
        for (const RankView& rank : view.ranks) busy.push_back(busyTime(trace, rank, pauses_));
        bottleneck_ = static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
        phase_ = allWork(view);
        for (const RankView& rank : view.ranks) phase_ = bothWays(trace, rank, phase_);
        for (const RankView& rank : view.ranks) ranks_.push_back(phaseOf(trace, rank, phase_));
    }

    // What repeats exactly is preferred, over as many micro-batches as there are ranks; runs jitter.
    std::optional<SteadyState> find()
    {
        constexpr double kJitter = 0.125;
        if (phase_.end <= phase_.begin) return std::nullopt;
        const std::size_t ranks = view_.ranks.size();
        const std::size_t most = std::min(begins(phase_).size() / perMicroBatch_, 2 * ranks);
        for (const double tolerance : {0.0, kJitter}) {
            if (tolerance > 0 && !jitters()) break;
            for (std::size_t tried = 0; tried <= most; ++tried)
                if (std::optional<SteadyState> steady = over(tried == 0 ? ranks : tried, tolerance)) return steady;
        }
        return std::nullopt;
    }

private:
    // Whether the bottleneck takes different times for the same.
    [[nodiscard]] bool jitters() const
    {
        std::map<std::tuple<ActionKind, Stage, Flow, std::int32_t>, TimeNs> taken;
        for (const SliceRef ref : ranks_[bottleneck_]) {
            const Lane& lane = trace_.lane(ref.lane);
            const Work& work = lane.action(ref.index).work;
            const TimeNs time = pauses_.running({lane.begin(ref.index), lane.end(ref.index)});
            const auto [known, fresh] = taken.try_emplace({work.kind, work.stage, work.flow, work.microbatch.value % std::max(trace_.info.slices, 1)}, time);
            if (!fresh && known->second != time) return true;
        }
        return false;
    }

    // Of the bottleneck's forwards.
    [[nodiscard]] std::vector<TimeNs> begins(Interval within) const
    {
        std::vector<TimeNs> found;
        for (const SliceRef ref : ranks_[bottleneck_]) {
            const TimeNs begin = beginAt(trace_, ref);
            if (goesForward(kindAt(trace_, ref)) && begin >= within.begin && begin < within.end) found.push_back(begin);
        }
        return found;
    }

    [[nodiscard]] std::optional<SteadyState> over(std::size_t microbatches, double tolerance) const
    {
        const std::size_t distance = microbatches * perMicroBatch_;
        const std::vector<TimeNs> all = begins(phase_);
        if (all.size() <= distance) return std::nullopt;
        std::vector<double> times;
        for (std::size_t i = distance; i < all.size(); ++i) times.push_back(static_cast<double>(pauses_.running({all[i - distance], all[i]})));
        const double time = medianOf(std::move(times));
        if (time <= 0) return std::nullopt;
        const std::optional<Interval> part = Repetition(trace_, pauses_, perMicroBatch_).longest(ranks_, phase_, microbatches, time, tolerance);
        if (!part) return std::nullopt;
        // what a rank idles before its first action there has nothing to be compared with
        Interval compared = *part;
        for (const std::vector<SliceRef>& rank : ranks_)
            compared.begin = std::max(compared.begin, beginAt(trace_, *std::find_if(rank.begin(), rank.end(), [&](SliceRef ref) { return beginAt(trace_, ref) >= part->begin; })));
        const std::vector<TimeNs> steady = begins(compared);
        if (steady.size() <= distance) return std::nullopt;
        const std::size_t periods = (steady.size() - 1) / distance;
        const Interval whole{steady.front(), steady[periods * distance]};
        const auto length = static_cast<double>(pauses_.running(whole));
        if (length <= 0) return std::nullopt;
        TimeNs busy = 0;
        for (const RankView& rank : view_.ranks) busy += busyWithin(trace_, rank, whole, pauses_);
        SteadyState found;
        found.bottleneck = view_.ranks[bottleneck_].rank;
        found.phase = *part;
        found.over = static_cast<int>(microbatches);
        found.period = length / static_cast<double>(periods * microbatches);
        found.rate = 1e9 / found.period;
        found.bubble = 1 - static_cast<double>(busy) / static_cast<double>(view_.ranks.size()) / length;
        return found;
    }

    const Trace& trace_;
    const StepView& view_;
    Pauses pauses_;
    std::size_t perMicroBatch_;
    std::size_t bottleneck_ = 0;
    Interval phase_{};
    std::vector<std::vector<SliceRef>> ranks_; // phaseOf()
};

} // namespace

std::optional<SteadyState> steadyState(const Trace& trace, Step step) { return steadyState(trace, StepIndex(trace), step); }

std::optional<SteadyState> steadyState(const Trace& trace, const StepIndex& index, Step step)
{
    const StepView view = viewOf(trace, index, step);
    if (!view.computes) return std::nullopt;
    return Search(trace, view).find();
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
