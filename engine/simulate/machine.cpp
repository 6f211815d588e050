// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/machine.h"

#include "engine/schedule/batch.h"
#include "engine/schedule/handoff.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/shard.h"
#include "engine/schedule/weight_versions.h"
#include "engine/simulate/action_time.h"
#include "engine/simulate/handed_bytes.h"
#include "engine/simulate/slice_parts.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace stagecraft::engine {

using traces::EdgeKind;
using traces::Interval;
using traces::LaneKind;
using traces::MemoryClass;
using traces::SliceRef;
using traces::Work;

namespace {

constexpr std::uint64_t kStepSeed = 0xd1b54a32d192ed03ULL; // odd: the steps of a run draw apart

// Which forward or backward a milestone speaks of.
Work workOf(const Milestone& need)
{
    const bool ahead = need.fact == Fact::ForwardDone || need.fact == Fact::ForwardArrived || need.fact == Fact::ForwardSent;
    Work work{ahead ? ActionKind::Forward : ActionKind::Backward, need.flow, need.stage, need.microbatch};
    if (need.fact == Fact::ForwardArrived) work.stage = Stage{need.stage.value - 1};
    if (need.fact == Fact::BackwardArrived) work.stage = Stage{need.stage.value + 1};
    return work;
}

} // namespace

Machine::Machine(const Schedule& schedule, const CostTable& costs)
    : schedule_(schedule), costs_(costs), shape_(schedule, hasCommunication(schedule)),
      sharding_(gathersWeights(schedule) ? Sharding::Zero3 : costs.sharding),
      meets_(shape_.communicates && costs.machine.send == SendMode::Rendezvous),
      handsBytes_(std::any_of(costs.stages.begin(), costs.stages.end(), [](const StageCosts& stage) { return stage.outputBytes > 0; })),
      inference_(schedule.inference()),
      entry_(versionsAtEntry(schedule)), occupies_(shape_.communicates && costs.machine.transfers == TransferPlace::Ranks), links_(costs, schedule.ranks),
      recording_(schedule, costs), ranks_(schedule.order.size()), weights_((schedule.twoDirections() ? 2 : 1) * costs.stages.size())
{
    const MachineModel& model = costs.machine;
    ordered_ = model.send != SendMode::Buffered || model.transfers != TransferPlace::Nothing || model.sharedLinks || model.barrier;
    const bool channels = model.send == SendMode::Channel;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        for (const Action& action : schedule.order[r]) {
            if (channels && sends(action.kind())) channels_[{Rank{r}, messageOf(handedOver(action.work))->to}].messages.push_back(handedOver(action.work));
            if (action.kind() == ActionKind::Unshard) weightsOf(action.work).sharded = true;
            if (action.kind() != ActionKind::Recompute) continue;
            recomputed_.resize(shape_.factSlots);
            recomputed_[slotOf({ActionKind::Forward, action.work.flow, action.work.stage, action.work.microbatch})] = true;
        }
        if (r < costs.machine.lateStart.size()) ranks_[r].clock = costs.machine.lateStart[r];
    }
    if (schedule.asynchronous())
        for (Weights& weights : weights_) weights.old.emplace(schedule, entry_);
    openMemory();
}

bool Machine::run(int steps, const std::stop_token& stop)
{
    steps_ = steps;
    made_.resize(static_cast<std::size_t>(steps));
    stepSpan_.assign(static_cast<std::size_t>(steps), {std::numeric_limits<TimeNs>::max(), std::numeric_limits<TimeNs>::min()});
    made_.front().resize(2 * shape_.factSlots);
    for (std::size_t r = 0; r < ranks_.size(); ++r) advance(r, ranks_[r].clock);
    while (!running_.empty() && !stop.stop_requested()) {
        if (ordered_) std::pop_heap(running_.begin(), running_.end(), std::greater<>());
        const std::size_t r = running_.back().rank;
        running_.pop_back();
        complete(r);
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const RankState& rank) { return rank.step == steps_; });
}

traces::Trace Machine::trace() &&
{
    for (std::size_t s = 0; s < stepSpan_.size(); ++s)
        if (stepSpan_[s].begin <= stepSpan_[s].end) recording_.step({traces::Step{s}, stepSpan_[s], std::nullopt});
    return std::move(recording_).trace();
}

TimeNs Machine::duration(std::size_t r, const Action& action) const
{
    const TimeNs time = actionTime(costs_, action, costs_.seed + kStepSeed * static_cast<std::uint64_t>(ranks_[r].step));
    if (costs_.machine.rankScale.empty()) return time;
    return static_cast<TimeNs>(std::llround(static_cast<double>(time) * costs_.machine.scaleOf(r)));
}

void Machine::advance(std::size_t r, TimeNs now)
{
    while (tryNext(r, now)) {}
}

bool Machine::tryNext(std::size_t r, TimeNs now)
{
    RankState& rank = ranks_[r];
    if (rank.running || rank.open != 0 || rank.finished || rank.step == steps_) return false;
    if (rank.position == schedule_.order[r].size()) {
        rank.finished = true;
        updateWhenReady(r, now);
        return false;
    }
    const Action& action = schedule_.order[r][rank.position];
    if (traces::isCompute(action.kind())) return tryCompute(r, action);
    if (meets_ && traces::isTransfer(action.kind())) {
        post(r, now);
        return false;
    }
    if (sends(action.kind())) return trySend(r, action, now);
    if (receives(action.kind())) return tryReceive(r, action);
    beside(r, action);
    ++rank.position;
    return true;
}

bool Machine::tryCompute(std::size_t r, const Action& action)
{
    TimeNs begin = ranks_[r].clock;
    bool ready = true;
    if (action.kind() == ActionKind::Optimizer) { // the schedule says when
        if (reduces() && !schedule_.twoDirections()) reduceGradients({r}, action.stage());
        begin = std::max(begin, weightsOf(action.work).reduced);
    }
    forEachWork(action, [&](const Work& work) { ready = ready && isReady(r, work, begin); });
    if (ready) occupy(r, begin, begin + duration(r, action));
    return false;
}

void Machine::occupy(std::size_t r, TimeNs begin, TimeNs end)
{
    ranks_[r].running = true;
    ranks_[r].began = begin;
    ranks_[r].clock = end;
    running_.push_back({end, r});
    if (ordered_) std::push_heap(running_.begin(), running_.end(), std::greater<>());
}

// Moves `begin` behind everything that the work waits for; notes what is not known yet.
bool Machine::isReady(std::size_t r, const Work& work, TimeNs& begin)
{
    RankState& rank = ranks_[r];
    const bool there = everyNeed(shape_, work, [&](const Milestone& need) {
        const Work source = workOf(need);
        const Made& what = made(rank.step, source);
        const bool own = shape_.rank(source.flow, source.stage) == Rank{r};
        const TimeNs at = own ? what.done : what.arrived;
        if (at == kNever || (!own && shape_.communicates && !what.received)) {
            rank.blockedOn = slotOf(source);
            return false;
        }
        begin = std::max(begin, at);
        return true;
    });
    if (!there) return false;
    const Weights& weights = weightsOf(work);
    if (weights.sharded && work.kind != ActionKind::Optimizer) {
        if (weights.gathered == kNever) return false; // no UNSHARD before it: for ever
        begin = std::max(begin, weights.gathered);
    }
    if (work.kind == ActionKind::Backward || work.kind == ActionKind::InputGrad) {
        const Made& kept = made(rank.step, {ActionKind::Forward, work.flow, work.stage, work.microbatch});
        if (kept.offloaded != kNever && kept.reloaded == kNever) return false; // no RELOAD before it: for ever
        begin = std::max(begin, kept.reloaded);
    }
    return true;
}

std::optional<Machine::Message> Machine::messageOf(const Work& made) const
{
    const std::optional<Handoff> handoff = outputOf(schedule_, made);
    if (!handoff) return std::nullopt;
    return Message{handoff->from, handoff->to, partOf(costs_.sliceSize, handedBytes(costs_, *handoff), made.microbatch), handoff->send};
}

Interval Machine::launch(std::size_t r, const Work& work, const Message& message, TimeNs at)
{
    const Interval way = links_.send(message.from, message.to, message.bytes, at);
    made(ranks_[r].step, work).arrived = way.end;
    // the next stage's rank has it in a buffer until it is used
    recording_.hold(message.from, MemoryClass::Buffers, at, message.bytes);
    recording_.hold(message.from, MemoryClass::Buffers, way.end, -message.bytes);
    recording_.hold(message.to, MemoryClass::Buffers, way.end, message.bytes);
    if (!occupies_ && way.end > at)
        recording_.transfer(message.from, {way.begin, way.end, message.send, traces::Step{ranks_[r].step}, {}});
    return way;
}

void Machine::wake(std::size_t r, const Work& made, Rank receiver, TimeNs now)
{
    RankState& waiter = ranks_[index(receiver)];
    if (waiter.step != ranks_[r].step || waiter.blockedOn != slotOf(made)) return;
    waiter.blockedOn = kNothing;
    advance(index(receiver), now);
}

bool Machine::trySend(std::size_t r, const Action& action, TimeNs now)
{
    RankState& rank = ranks_[r];
    const Work work = handedOver(action.work);
    const Message message = *messageOf(work);
    const Interval way = launch(r, work, message, rank.clock);
    if (occupies_) occupy(r, rank.clock, way.end);
    else ++rank.position;
    wake(r, work, message.to, now);
    return !occupies_;
}

// Behind a message that nobody takes before it, it never comes.
bool Machine::isNextOfChannel(std::size_t r, const Work& work) const
{
    if (channels_.empty()) return true;
    const auto channel = channels_.find({messageOf(work)->from, Rank{r}});
    if (channel == channels_.end()) return false;
    const auto& [messages, taken] = channel->second;
    return messages[taken % messages.size()] == work; // the same in every step
}

bool Machine::tryReceive(std::size_t r, const Action& action)
{
    RankState& rank = ranks_[r];
    const Work work = handedOver(action.work);
    if (!isNextOfChannel(r, work)) return false; // for ever: see there
    Made& what = made(rank.step, work);
    if (occupies_ && what.arrived == kNever) {
        rank.blockedOn = slotOf(work);
        return false;
    }
    what.received = true;
    if (!channels_.empty()) ++channels_.at({messageOf(work)->from, Rank{r}}).taken;
    if (occupies_) {
        occupy(r, rank.clock, std::max(rank.clock, what.arrived));
        return false;
    }
    ++rank.position;
    return true;
}

void Machine::post(std::size_t r, TimeNs now)
{
    RankState& rank = ranks_[r];
    const std::vector<Action>& list = schedule_.order[r];
    const std::size_t end = batchEnd(list, rank.position);
    const TimeNs at = std::max(now, rank.clock);
    rank.open = static_cast<std::uint32_t>((1ULL << (end - rank.position)) - 1);
    rank.met = rank.clock;
    for (std::size_t position = rank.position; position < end; ++position) {
        const std::optional<std::size_t> other = counterpart(r, position);
        if (!other) continue;
        const Work work = handedOver(list[position].work);
        const Message message = *messageOf(work);
        const bool gives = sends(list[position].kind());
        const std::size_t sender = index(message.from);
        const Interval way = launch(sender, work, message, at);
        made(rank.step, work).received = true;
        meet(r, position, occupies_ ? way.end : at);
        meet(gives ? index(message.to) : sender, *other, occupies_ ? way.end : at);
    }
}

std::optional<std::size_t> Machine::counterpart(std::size_t r, std::size_t position) const
{
    const Action& action = schedule_.order[r][position];
    const Work work = handedOver(action.work);
    const bool gives = sends(action.kind());
    const Message message = *messageOf(work);
    const std::size_t peer = index(gives ? message.to : message.from);
    const RankState& other = ranks_[peer];
    if (other.step != ranks_[r].step) return std::nullopt;
    for (std::uint32_t place = 0; (other.open >> place) != 0; ++place) {
        const Action& its = schedule_.order[peer][other.position + place];
        if ((other.open >> place & 1U) != 0 && sends(its.kind()) != gives && handedOver(its.work) == work) return other.position + place;
    }
    return std::nullopt;
}

// The other side of the transfer is there; the rank goes on when all that it posted are met.
void Machine::meet(std::size_t r, std::size_t position, TimeNs until)
{
    RankState& rank = ranks_[r];
    rank.open &= ~(1U << (position - rank.position));
    if (until >= rank.met) rank.metLast = position;
    rank.met = std::max(rank.met, until);
    if (rank.open == 0) occupy(r, rank.clock, rank.met);
}

void Machine::complete(std::size_t r)
{
    RankState& rank = ranks_[r];
    rank.running = false;
    const std::vector<Action>& list = schedule_.order[r];
    const bool posted = meets_ && traces::isTransfer(list[rank.position].kind());
    const Action& action = list[posted ? rank.metLast : rank.position]; // of several that waited as one, the one that took longest
    rank.position = posted ? batchEnd(list, rank.position) : rank.position + 1;
    const Interval span{rank.began, rank.clock};
    const bool computes = traces::isCompute(action.kind());
    if (computes || span.end > span.begin) {
        const SliceRef slice = addSlice(r, LaneKind::Compute, span, action);
        addReason(r, slice);
        rank.held = Held{slice, span.end};
        if (computes) {
            forEachWork(action, [&](const Work& work) { addEdges(r, work, slice); });
            if (const Weights& weights = weightsOf(action.work); action.kind() == ActionKind::Optimizer && weights.reduced != kNever)
                recording_.edge({EdgeKind::Data, weights.reduction, slice, weights.reduced});
            rank.latest = slice;
            rank.computed = true;
        } else if (const Work work = handedOver(action.work); receives(action.kind())) {
            const Made& what = made(rank.step, work);
            recording_.edge({EdgeKind::Data, what.slice, slice, what.arrived});
        } else if (const RankState& other = ranks_[index(messageOf(work)->to)]; meets_ && other.computed) {
            recording_.edge({EdgeKind::Data, other.latest, slice, span.end}); // it waited for the other side
        }
    }
    if (computes) {
        std::array<std::optional<Rank>, 2> receivers; // of the two of a pair
        std::size_t part = 0;
        forEachWork(action, [&](const Work& work) {
            const std::size_t which = part++;
            account(r, work, span.begin, span.end);
            if (work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad) weightsOf(work).gradientBy = rank.latest;
            if (!gainOf(work)) return;
            Made& what = made(rank.step, work);
            what.done = span.end;
            what.slice = rank.latest;
            const std::optional<Message> message = shape_.communicates ? std::nullopt : messageOf(work);
            if (!message) return;
            launch(r, work, *message, span.end);
            receivers[which] = message->to;
        });
        part = 0;
        forEachWork(action, [&](const Work& work) {
            if (const std::optional<Rank>& receiver = receivers[part++]) wake(r, work, *receiver, span.end);
        });
    }
    advance(r, span.end);
}

// Of activations off their rank or back: on the way to the partner, or to the host.
Interval Machine::copy(std::size_t r, const Action& action, Bytes bytes, TimeNs at)
{
    if (schedule_.offloadTo == OffloadTo::Host) return {at, at + costs_.machine.host.latency + costs_.machine.host.occupied(bytes)};
    const Rank partner = schedule_.partnerOf(Rank{r});
    const bool leaves = action.kind() == ActionKind::Offload;
    return links_.send(leaves ? Rank{r} : partner, leaves ? partner : Rank{r}, bytes, at);
}

// The other side of a copy: the partner has the same slice on a lane of its own.
void Machine::keepForPartner(std::size_t r, int depth, Interval copy, const Action& action, TimeNs at, Bytes change)
{
    const Rank partner = schedule_.partnerOf(Rank{r});
    recording_.add(partner, LaneKind::Copy, {copy.begin, copy.end, action, traces::Step{ranks_[r].step}, {}}, depth);
    recording_.hold(partner, MemoryClass::Activations, at, change);
}

// Copies and collectives begin when the rank comes to them and their lane is free, and take nothing of the rank.
void Machine::beside(std::size_t r, const Action& action)
{
    RankState& rank = ranks_[r];
    Weights& weights = weightsOf(action.work);
    const StageCosts& stage = costs_.stages[index(action.stage())];
    const Bytes activations = partOf(costs_.sliceSize, stage.activationBytes, action.microbatch());
    const auto collective = [&](TimeNs time) {
        const TimeNs begin = std::max(rank.clock, rank.collectiveFree);
        return Interval{begin, begin + time};
    };
    const auto addCopyReason = [&](SliceRef slice, TimeNs begin, TimeNs free) { addReason(r, slice, begin > free ? begin : 0); };
    const bool toPartner = schedule_.offloadTo == OffloadTo::Partner;
    switch (action.kind()) {
    case ActionKind::Offload: {
        Made& kept = made(rank.step, {ActionKind::Forward, action.work.flow, action.stage(), action.microbatch()});
        const TimeNs free = std::max(rank.clock, rank.offloadFree);
        const Interval away = copy(r, action, activations, free);
        kept.offloaded = rank.offloadFree = away.end;
        kept.offload = addSlice(r, LaneKind::Copy, away, action, 0);
        addCopyReason(kept.offload, away.begin, free);
        recording_.hold(Rank{r}, MemoryClass::Activations, away.end, -activations);
        if (toPartner) keepForPartner(r, 2, away, action, away.begin, activations);
        return;
    }
    case ActionKind::Reload: {
        Made& kept = made(rank.step, {ActionKind::Forward, action.work.flow, action.stage(), action.microbatch()});
        const TimeNs free = std::max({rank.clock, rank.reloadFree, kept.offloaded});
        const Interval back = copy(r, action, activations, free);
        kept.reloaded = rank.reloadFree = back.end;
        kept.reload = addSlice(r, LaneKind::Copy, back, action, 1);
        recording_.edge({EdgeKind::Data, kept.offload, kept.reload, kept.offloaded});
        addCopyReason(kept.reload, back.begin, free);
        recording_.hold(Rank{r}, MemoryClass::Activations, back.begin, activations);
        if (toPartner) keepForPartner(r, 3, back, action, back.end, -activations);
        return;
    }
    case ActionKind::Unshard: {
        const Interval gather = collective(ring(stage.weightBytes, 1, costs_.machine.replicas));
        if (weights.gathered == kNever)
            recording_.hold(Rank{r}, MemoryClass::Weights, rank.clock, stage.weightBytes - ownPart(stage.weightBytes, true)); // as FSDP asks for it
        weights.gathered = gather.end;
        weights.gather = addCollective(r, gather, action);
        addReason(r, weights.gather);
        return;
    }
    case ActionKind::Reshard:
        if (weights.gathered != kNever)
            recording_.hold(Rank{r}, MemoryClass::Weights, std::max(rank.clock, weights.gathered),
                            ownPart(stage.weightBytes, true) - stage.weightBytes);
        weights.gathered = kNever;
        return;
    case ActionKind::ReduceGrad: {
        const Interval reduce = collective(ring(stage.gradientBytes, 1, costs_.machine.replicas));
        weights.reduction = addCollective(r, reduce, action);
        addReason(r, weights.reduction); // that is behind all that add to these gradients
        keepOwnGradient(Rank{r}, weights, reduce.end);
        return;
    }
    default: return; // simulate() lets no other kind through
    }
}

SliceRef Machine::addSlice(std::size_t r, LaneKind lane, Interval span, const Action& action, int depth)
{
    Interval& step = stepSpan_[static_cast<std::size_t>(ranks_[r].step)];
    step = {std::min(step.begin, span.begin), std::max(step.end, span.end)};
    return recording_.add(Rank{r}, lane, {span.begin, span.end, action, traces::Step{ranks_[r].step}, {}}, depth);
}

SliceRef Machine::addCollective(std::size_t r, Interval span, const Action& action)
{
    const SliceRef slice = addSlice(r, LaneKind::Collective, span, action);
    ranks_[r].collectiveFree = span.end;
    ranks_[r].lastCollective = slice;
    return slice;
}

// An edge from what let the rank come to the slice; the order on a lane needs none. A copy may have queued after that, on a way that
// others use.
void Machine::addReason(std::size_t r, SliceRef slice, TimeNs queuedUntil)
{
    const std::optional<Held>& held = ranks_[r].held;
    if (held && held->by.lane != slice.lane) recording_.edge({EdgeKind::Data, held->by, slice, std::max(held->until, queuedUntil)});
}

void Machine::addEdges(std::size_t r, const Work& work, SliceRef slice)
{
    everyNeed(shape_, work, [&](const Milestone& need) {
        // an own forward is told by the rank's order; only the turn at the last stage is a hand-off
        const bool done = need.fact == Fact::ForwardDone || need.fact == Fact::BackwardDone;
        if (done && need.stage == work.stage && need.stage.value + 1 != shape_.stages) return true;
        const Work source = workOf(need);
        const Made& what = made(ranks_[r].step, source);
        const bool own = shape_.rank(source.flow, source.stage) == Rank{r};
        recording_.edge({EdgeKind::Data, what.slice, slice, own ? what.done : what.arrived});
        return true;
    });
    const Weights& weights = weightsOf(work);
    if (weights.sharded && work.kind != ActionKind::Optimizer) recording_.edge({EdgeKind::Data, weights.gather, slice, weights.gathered});
    if (work.kind == ActionKind::Backward || work.kind == ActionKind::InputGrad) {
        const Made& kept = made(ranks_[r].step, {ActionKind::Forward, work.flow, work.stage, work.microbatch});
        if (kept.reloaded != kNever) recording_.edge({EdgeKind::Data, kept.reload, slice, kept.reloaded});
    }
}

} // namespace stagecraft::engine
