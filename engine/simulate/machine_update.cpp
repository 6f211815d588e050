// SPDX-License-Identifier: Apache-2.0
//
// The end of a step: gradients are summed over the copies of the weights, in buckets that begin as soon as the backward has made
// them (as PyTorch's DistributedDataParallel does, arXiv 2006.15704 sec. 3.2), then the weights are updated; with a barrier on no
// rank before all have their gradients. Times of rings of d ranks, n bytes, Link {a, b} (Thakur, Rabenseifner, Gropp 2005):
//   all-reduce                    2 ((d-1) a + (d-1)/d n/b)
//   reduce-scatter, all-gather      ((d-1) a + (d-1)/d n/b)
// Where replicas divide the optimizer state (ZeRO-1, -2), gradients are reduce-scattered, each rank updates its own part, and the
// new weights are gathered; where the schedule has UNSHARD actions of a stage (ZeRO-3), by those, before they are used. The two copies
// of a tied embedding are an all-reduce of their two ranks, over the way between those, once each has summed its own over the replicas
// (as Megatron-LM does, arXiv 1909.08053).
#include "engine/simulate/machine.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stagecraft::engine {

using traces::EdgeKind;
using traces::Interval;
using traces::LaneKind;
using traces::MemoryClass;
using traces::SliceRef;

namespace {

constexpr Bytes kMostBuckets = 1000; // of a stage: more say nothing more

} // namespace

TimeNs Machine::ring(Bytes bytes, int passes, int ranks) const
{
    if (ranks <= 1) return 0;
    const Link& link = costs_.machine.replica;
    return passes * ((ranks - 1) * link.latency + link.occupied(bytes) * (ranks - 1) / ranks);
}

bool Machine::reduces() const
{
    const bool mirrored = schedule_.twoDirections() && costs_.machine.replica != Link{}; // asked for by naming the way
    return costs_.machine.replicas > 1 || mirrored;
}

// The ranks whose weights are updated at one time: all of them with a barrier, the two that hold the same stage where each
// direction has its copy of the weights, those of the first and the last stage where they share a table, else the rank alone.
std::vector<std::size_t> Machine::updatedTogether(std::size_t r) const
{
    std::vector<std::size_t> group{r};
    if (costs_.machine.barrier) {
        group.resize(ranks_.size());
        for (std::size_t i = 0; i < group.size(); ++i) group[i] = i;
        return group;
    }
    std::vector<std::pair<Rank, Rank>> copies;
    if (schedule_.twoDirections() && reduces())
        for (int s = 0; s < schedule_.stages(); ++s)
            copies.emplace_back(schedule_.rankOf(Flow::Down, Stage{s}), schedule_.rankOf(Flow::Up, Stage{s}));
    if (ties())
        for (const Flow flow : schedule_.flows())
            copies.emplace_back(schedule_.rankOf(flow, Stage{0}), schedule_.rankOf(flow, Stage{schedule_.stages() - 1}));
    // closed under "holds a copy of the weights of": with mirrored placements that is the two
    for (std::size_t known = 0; known < group.size(); ++known)
        for (const auto& [a, b] : copies)
            for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}})
                if (index(one) == group[known] && std::find(group.begin(), group.end(), index(other)) == group.end())
                    group.push_back(index(other));
    std::sort(group.begin(), group.end());
    return group;
}

void Machine::updateWhenReady(std::size_t r, TimeNs now)
{
    const std::vector<std::size_t> group = updatedTogether(r);
    const int step = ranks_[r].step;
    for (const std::size_t other : group)
        if (!ranks_[other].finished || ranks_[other].step != step) return;
    if (reduces()) reduceGradients(group);
    if (ties())
        for (const Flow flow : schedule_.flows())
            if (std::find(group.begin(), group.end(), index(schedule_.rankOf(flow, Stage{0}))) != group.end()) sumTied(flow);

    std::optional<Held> barrier;
    if (costs_.machine.barrier)
        for (const std::size_t other : group) {
            std::optional<Held> done = ranks_[other].held;
            forEachHeld(Rank{other}, [&](Flow, Stage, const StageCosts&, const Weights& weights) {
                if (done && weights.reduced > done->until) done = Held{weights.reduction, weights.reduced};
            });
            if (done && (!barrier || done->until > barrier->until)) barrier = done;
        }
    for (const std::size_t other : group) update(other, barrier);
    if (step + 1 < steps_) made_[static_cast<std::size_t>(step) + 1].resize(2 * shape_.factSlots);
    const bool allDone = std::all_of(ranks_.begin(), ranks_.end(), [&](const RankState& rank) { return rank.step > step; });
    if (allDone) made_[static_cast<std::size_t>(step)] = {};
    for (const std::size_t other : group) advance(other, std::max(now, ranks_[other].clock));
}

// Of the stages whose schedule does not say when (REDUCE_GRAD), or of one of them.
void Machine::reduceGradients(const std::vector<std::size_t>& group, std::optional<Stage> only)
{
    struct Bucket {
        TimeNs ready;
        SliceRef madeBy; // the action that makes the last of it
        Stage stage;
        TimeNs time;
    };
    std::vector<Bucket> buckets;
    const bool scatters = divides(Sharding::Zero1);
    for (int s = 0; s < schedule_.stages(); ++s) {
        if (only && *only != Stage{s}) continue;
        const Bytes bytes = costs_.stages[static_cast<std::size_t>(s)].gradientBytes;
        const Bytes size = std::max<Bytes>(costs_.machine.bucketBytes, 1);
        const Bytes count = std::clamp<Bytes>((bytes + size - 1) / size, 1, kMostBuckets);
        for (Bytes b = 0; b < count; ++b) {
            TimeNs ready = kNever;
            SliceRef madeBy{};
            for (const Flow flow : schedule_.flows()) {
                const Weights& weights = weights_[weightsIndex(flow, Stage{s})];
                const bool here = std::find(group.begin(), group.end(), index(schedule_.rankOf(flow, Stage{s}))) != group.end();
                if (!here || weights.gradientEnd == kNever || weights.reduced != kNever) continue;
                const auto part = static_cast<double>(b + 1) / static_cast<double>(count);
                const auto length = static_cast<double>(weights.gradientEnd - weights.gradientBegin);
                const TimeNs there = weights.gradientBegin + static_cast<TimeNs>(length * part);
                if (there <= ready) continue;
                ready = there;
                madeBy = weights.gradientBy;
            }
            const Bytes whole = bytes / count + (b < bytes % count ? 1 : 0);
            if (ready != kNever) buckets.push_back({ready, madeBy, Stage{s}, ring(whole, scatters ? 1 : 2, copies())});
        }
    }
    std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) { return a.ready < b.ready; });
    std::map<std::pair<std::size_t, std::size_t>, TimeNs> reduced; // by rank and weights: the end of the last bucket
    for (const Bucket& bucket : buckets) {
        TimeNs begin = bucket.ready;
        for (const Flow flow : schedule_.flows())
            begin = std::max(begin, ranks_[index(schedule_.rankOf(flow, bucket.stage))].collectiveFree);
        const Interval span{begin, begin + bucket.time};
        std::vector<std::pair<SliceRef, TimeNs>> reasons{{bucket.madeBy, bucket.ready}};
        for (const Flow flow : schedule_.flows()) { // each of the ranks was to be free of what it reduced before
            const RankState& rank = ranks_[index(schedule_.rankOf(flow, bucket.stage))];
            if (rank.lastCollective) reasons.emplace_back(*rank.lastCollective, rank.collectiveFree);
        }
        for (const Flow flow : schedule_.flows()) {
            const std::size_t r = index(schedule_.rankOf(flow, bucket.stage));
            const ActionKind kind = scatters ? ActionKind::ReduceGrad : ActionKind::AllReduce;
            const SliceRef slice = addCollective(r, span, traces::makeAction(kind, bucket.stage, traces::kNoMicroBatch, flow));
            for (const auto& [from, ready] : reasons)
                if (from.lane != slice.lane) recording_.edge({EdgeKind::Data, from, slice, ready});
            weights_[weightsIndex(flow, bucket.stage)].reduction = slice;
            reduced[{r, weightsIndex(flow, bucket.stage)}] = span.end;
        }
    }
    for (const auto& [place, end] : reduced) keepOwnGradient(Rank{place.first}, weights_[place.second], end);
}

// Two ranks, or one that holds both stages; two passes of half the bytes each. Where the schedule says when weights are updated, they
// are by then.
void Machine::sumTied(Flow flow)
{
    const Stage ends[] = {Stage{0}, Stage{schedule_.stages() - 1}};
    TimeNs begin = kNever;
    std::vector<std::pair<SliceRef, TimeNs>> reasons;
    for (const Stage stage : ends) {
        const Weights& weights = weights_[weightsIndex(flow, stage)];
        const RankState& rank = ranks_[index(schedule_.rankOf(flow, stage))];
        const bool summed = weights.reduced != kNever;
        const TimeNs there = summed ? weights.reduced : weights.gradientEnd;
        if (there == kNever) return;
        reasons.emplace_back(summed ? weights.reduction : weights.gradientBy, there);
        if (rank.lastCollective) reasons.emplace_back(*rank.lastCollective, rank.collectiveFree);
        begin = std::max({begin, there, rank.collectiveFree});
    }
    const Rank first = schedule_.rankOf(flow, ends[0]);
    const Rank last = schedule_.rankOf(flow, ends[1]);
    const bool together = first == last; // one sum for both
    const Links::Hop half = links_.hop(first, last, ownPart(costs_.tiedBytes, divides(Sharding::Zero1)) / 2);
    const Interval span{begin, begin + (together ? 0 : 2 * (half.latency + half.occupied))};
    SliceRef slice{};
    for (const Stage stage : ends) {
        if (!together || stage == ends[0]) {
            slice = addCollective(index(schedule_.rankOf(flow, stage)), span,
                                  traces::makeAction(ActionKind::AllReduce, stage, traces::kNoMicroBatch, flow));
            for (const auto& [from, ready] : reasons)
                if (from.lane != slice.lane) recording_.edge({EdgeKind::Data, from, slice, ready});
        }
        Weights& weights = weights_[weightsIndex(flow, stage)];
        weights.reduction = slice;
        weights.reduced = span.end;
    }
}

// Summed at that moment; the rank goes on with its own part where replicas divide gradients.
void Machine::keepOwnGradient(Rank rank, Weights& weights, TimeNs at)
{
    weights.reduced = at;
    const Bytes own = ownPart(weights.gradient, divides(Sharding::Zero2) || weights.sharded);
    recording_.hold(rank, MemoryClass::Gradients, at, own - std::exchange(weights.gradient, own));
}

void Machine::update(std::size_t r, const std::optional<Held>& barrier)
{
    RankState& rank = ranks_[r];
    const auto holdUntil = [&](const Held& held) {
        if (held.until <= rank.clock) return;
        rank.clock = held.until;
        rank.held = held;
    };
    if (barrier) holdUntil(*barrier);
    TimeNs gathered = 0;
    SliceRef gather{};
    forEachHeld(Rank{r}, [&](Flow flow, Stage s, const StageCosts& stage, Weights& weights) {
        const TimeNs begin = std::max(rank.clock, weights.reduced);
        const Action action = traces::makeAction(ActionKind::Optimizer, s, traces::kNoMicroBatch, flow);
        TimeNs end = begin;
        if (stage.optimizer > 0 && !weights.stepped) {
            end += divides(Sharding::Zero1) ? duration(r, action) / costs_.machine.replicas : duration(r, action);
            const SliceRef slice = addSlice(r, LaneKind::Compute, {begin, end}, action);
            if (weights.reduced != kNever) recording_.edge({EdgeKind::Data, weights.reduction, slice, weights.reduced});
            addReason(r, slice);
            rank.latest = slice;
            rank.held = Held{slice, end};
            rank.clock = end;
        }
        holdUntil({weights.reduction, weights.reduced});
        recording_.hold(Rank{r}, MemoryClass::Gradients, end, -std::exchange(weights.gradient, 0));
        const TimeNs again = ring(stage.weightBytes, 1, costs_.machine.replicas);
        if (divides(Sharding::Zero1) && !weights.sharded && again > 0) {
            const TimeNs from = std::max(end, rank.collectiveFree);
            gathered = from + again;
            gather = addCollective(r, {from, gathered}, traces::makeAction(ActionKind::Unshard, s, traces::kNoMicroBatch, flow));
            addReason(r, gather);
        }
        weights.stepped = false;
        weights.gradientEnd = weights.reduced = kNever;
    });
    holdUntil({gather, gathered});
    ++rank.step;
    rank.position = 0;
    rank.finished = false;
}

} // namespace stagecraft::engine
