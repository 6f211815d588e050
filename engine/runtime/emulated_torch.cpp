// SPDX-License-Identifier: Apache-2.0
//
// Virtual ranks on virtual clocks. Of all next actions whose input is there, the one with the smallest virtual start is
// executed for real, alone, and timed; its rank's clock moves by the time it took. No action can come to start before one
// that ran already: what is not yet possible waits for an action that starts, and ends, later. Therefore what is held when
// an action runs is what the ranks hold at that virtual moment.
//
//   rank 0  |F0 |F1 |   |B0   |        rank clock = virtual end of its last action
//   rank 1      t|F0 |B0   |           t: transfer, from the cost table; stages of one rank hand over at once
//
// With replicas there are the virtual ranks of all of them, and the sums of their gradients lie beside the actions.
#include "engine/runtime/executor_torch.h"

#include "engine/probe/operators_torch.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/boundary.h"
#include "engine/runtime/busy_watch.h"
#include "engine/runtime/device_queue_torch.h"
#include "engine/runtime/emulated_sums_torch.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/virtual_copies_torch.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/shard.h"
#include "engine/simulate/links.h"
#include "engine/transport/local_handoff.h"
#include "traces/analysis/step_times.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

namespace {

class Emulation {
public:
    explicit Emulation(const std::vector<Execution>& replicas)
        : replicas_(replicas), run_(replicas.front()), meetings_(replicas.size()),
          ranks_(replicas.size() * static_cast<std::size_t>(run_.schedule.ranks)), inUse_(ranks_.size()), memory_(static_cast<int>(ranks_.size()))
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            lists_.push_back(rankWork(run_.schedule, inReplica(Rank{r}), endsOf(run_.plan.model), clippingOf(run_.plan.run),
                                      static_cast<int>(replicas.size())));
        for (const Execution& replica : replicas_) copies_.push_back(std::make_unique<VirtualCopies>(replica, memory_));
        for (std::size_t j = 0; j < replicas.size(); ++j)
            handoffs_.push_back(std::make_unique<LocalHandoff<Boundary>>(run_.schedule.stages(), mostUnits(run_.schedule), Patience{},
                                                                           static_cast<int>(run_.schedule.flows().size())));
        if (run_.plan.run.tracing >= TraceLevel::Kernels) operators_.emplace(run_.clock);
        if (run_.sums != nullptr) sums_.emplace(ranks(), memory_);
    }
    Emulation(const Emulation&) = delete;
    Emulation& operator=(const Emulation&) = delete;

    void runSteps()
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            const DeviceWatch::Wait wait(deviceOf(Rank{r}).isCpu() ? nullptr : run_.watch, Rank{r}, "at its first product");
            deviceOf(Rank{r}).warmUp();
        }
        TimeNs now = 0;
        for (int step = run_.firstStep; step < run_.plan.run.steps; ++step) {
            if (step > run_.firstStep) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
            const TimeNs begin = now;
            for (RankState& rank : ranks_) rank = {0, begin};
            frontier_ = begin;
            for (const auto& copies : copies_) copies->beginStep(begin);
            sampleAll(begin);
            for (std::size_t r = 0; r < ranks_.size(); ++r) runOf(Rank{r}).pipeline.beginStepOnDevice(inReplica(Rank{r}));
            if (!runStep(Step{step}) || !readLosses(Step{step})) return;
            for (const RankState& rank : ranks_) now = std::max(now, rank.clock);
            for (std::size_t r = 0; sums_ && r < ranks_.size(); ++r) now = std::max(now, sums_->freeAt(Rank{r}));
            sampleAll(now);
            run_.keeper.finish(Step{step}, {begin, now});
        }
    }

    [[nodiscard]] const BusyWatch& busy() const { return busy_; }

private:
    struct RankState {
        std::size_t next = 0; // in its list
        TimeNs clock = 0;
        bool held = false; // was, when it was looked at last
    };

    // Of two ranks that sum what each has of copies of the same weights.
    struct Meeting {
        TimeNs at = 0;
        std::map<Place, std::vector<at::Tensor>> gradients;
    };
    using Meetings = std::map<std::pair<Place, Place>, Meeting>;

    struct Next {
        Rank rank{};
        TimeNs start = 0;
    };

    bool runStep(Step step)
    {
        if (sums_) sums_->beginStep(step);
        std::size_t left = 0;
        for (const auto& list : lists_) left += list.size();
        while (left > 0) {
            std::optional<Next> next;
            while (!(next = earliest(step))) { // all that could go on are held: time stands still
                if (!run_.control.passGate(frontier_)) return false;
                run_.trouble.awaitChange(std::chrono::milliseconds(50));
            }
            frontier_ = next->start;
            if (!run_.control.passGate(next->start) || !goOnBesideUntil(next->start)) return false;
            const bool ofAll = sharesNorm(nextOf(next->rank));
            if (!(ofAll ? clipGradients(step) : execute(next->rank, step))) return false;
            left -= ofAll ? ranks_.size() : 1;
        }
        return goOnBesideUntil(std::numeric_limits<TimeNs>::max());
    }

    // A schedule that passed validation always has one, but for ranks that are held.
    [[nodiscard]] std::optional<Next> earliest(Step step)
    {
        std::optional<Next> best;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            RankState& rank = ranks_[r];
            if (rank.next == lists_[r].size()) continue;
            const Action& action = lists_[r][rank.next];
            const std::optional<TimeNs> ready = readyAt(Rank{r}, action);
            if (!ready) continue;
            if (std::exchange(rank.held, isHeld(action))) letGo(Rank{r}, action, *ready, step);
            if (rank.held) continue;
            const TimeNs start = std::max(rank.clock, *ready);
            if (!best || start < best->start) best = Next{Rank{r}, start};
        }
        return best;
    }

    [[nodiscard]] bool isHeld(const Action& action) const
    {
        bool held = false;
        engine::forEachWork(action, [&](const Work& work) { held = held || run_.trouble.holds(work.stage); });
        return held;
    }

    // A rank that was held has stood still for as long as the others went on.
    void letGo(Rank rank, const Action& action, TimeNs ready, Step step)
    {
        RankState& state = ranks_[index(rank)];
        const TimeNs could = std::max(state.clock, ready);
        if (state.held || could >= frontier_) return;
        run_.recorder.ring(rank).push(waitEvent(step, WaitCause::Hold, action.work, {could, frontier_}));
        state.clock = frontier_;
    }

    [[nodiscard]] const Action& nextOf(Rank rank) const { return lists_[index(rank)][ranks_[index(rank)].next]; }

    // When all that the action takes is there; nothing while some of it is not made.
    [[nodiscard]] std::optional<TimeNs> readyAt(Rank rank, const Action& action)
    {
        if (sharesNorm(action)) return meetingOfAll();
        if (action.kind() == ActionKind::AllReduce) return meeting(rank, action);
        if (sums_ && action.kind() == ActionKind::Optimizer) return sums_->summedAt(rank, placeOf(action.work));
        LocalHandoff<Boundary>& handoff = handoffOf(rank);
        TimeNs ready = 0;
        bool there = true;
        engine::forEachWork(action, [&](const Work& work) {
            ready = std::max(ready, copiesOf(rank).reloaded(work));
            const std::optional<TimeNs> gathered = gatheredAt(rank, work);
            if (gathered) ready = std::max(ready, *gathered);
            else there = false;
            const std::optional<BoxAddress> box = inputBox(work, run_.schedule.stages());
            if (!box) return;
            if (handoff.full(*box)) ready = std::max(ready, handoff.available(*box));
            else there = false;
        });
        return there ? std::optional(ready) : std::nullopt;
    }

    [[nodiscard]] std::optional<TimeNs> gatheredAt(Rank rank, const Work& work) const { return sums_ ? sums_->gatheredAt(rank, work) : -1; }

    // The moment at which both ranks that hold a copy of the weights have come to the sum of their gradients.
    [[nodiscard]] std::optional<TimeNs> meeting(Rank rank, const Action& action) const
    {
        const Place own = placeOf(action.work);
        const Place other = placeOf(action.partner);
        const Meetings& meetings = meetings_[static_cast<std::size_t>(replicaOf(rank))];
        if (const auto begun = meetings.find(std::minmax(own, other)); begun != meetings.end()) return begun->second.at;
        const Rank partner = among(rank, other);
        const std::size_t r = index(partner);
        TimeNs at = std::max(ranks_[index(rank)].clock, ranks_[r].clock);
        if (partner != rank && (ranks_[r].next == lists_[r].size() || lists_[r][ranks_[r].next] != Action{action.partner, action.work})) return std::nullopt;
        for (const Place& place : {own, other}) { // each copy's own sum comes first
            if (!sums_) break;
            const std::optional<TimeNs> summed = sums_->summedAt(rank, place);
            if (!summed) return std::nullopt;
            at = std::max({at, *summed, sums_->freeAt(among(rank, place))});
        }
        return at;
    }

    // The moment at which the last rank, of all replicas, has come to the norm of all gradients.
    [[nodiscard]] std::optional<TimeNs> meetingOfAll() const
    {
        TimeNs all = 0;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            if (ranks_[r].next == lists_[r].size() || !sharesNorm(nextOf(Rank{r}))) return std::nullopt;
            for (const Place& place : placesOf(run_.schedule, inReplica(Rank{r})))
                if (sums_ && !sums_->summedAt(Rank{r}, place)) return std::nullopt;
            all = std::max(all, comesToNormAt(r));
        }
        return all;
    }

    // Once it has its sums.
    [[nodiscard]] TimeNs comesToNormAt(std::size_t r) const { return sums_ ? std::max(ranks_[r].clock, sums_->freeAt(Rank{r})) : ranks_[r].clock; }

    // For all ranks at once: each begins when it has come, and all end together, when the last one knows its part. Each replica has the
    // same norm.
    bool clipGradients(Step step)
    {
        TimeNs end = 0;
        try {
            std::vector<at::Tensor> squares(replicas_.size());
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                const TimeNs realBegin = run_.clock.now();
                const at::Tensor own = runOf(Rank{r}).pipeline.squaredNorms(inReplica(Rank{r}));
                at::Tensor& sum = squares[static_cast<std::size_t>(replicaOf(Rank{r}))];
                sum = sum.defined() ? sum + own : own;
                end = std::max(end, comesToNormAt(r) + run_.clock.now() - realBegin);
            }
            for (std::size_t r = 0; r < ranks_.size(); ++r)
                runOf(Rank{r}).pipeline.clipGradients(inReplica(Rank{r}), squares[static_cast<std::size_t>(replicaOf(Rank{r}))]);
        } catch (...) {
            run_.control.fail(describeFailure(nextOf(Rank{0}).work, step, Rank{0}, std::current_exception()));
            return false;
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            RankState& rank = ranks_[r];
            RunEvent event = actionEvent(step, nextOf(Rank{r}).work, {.begin = comesToNormAt(r), .end = end, .ready = end});
            event.value[RunEvent::kOfAll] = 1;
            collectivesOf(Rank{r}).push(event);
            memory_.add(Rank{r}, end, runOf(Rank{r}).pipeline.ledger(inReplica(Rank{r})).held());
            if (sums_) sums_->occupy(Rank{r}, end);
            ++rank.next;
            rank.clock = end;
        }
        return true;
    }

    // With replicas a rank's collectives have a ring of their own.
    [[nodiscard]] EventRing<RunEvent>& collectivesOf(Rank rank) const { return sums_ ? run_.recorder.collectiveRing(rank) : run_.recorder.ring(rank); }

    // Each of the two adds what the other had before.
    void sumGradients(Rank rank, const Action& action, TimeNs at)
    {
        const Place own = placeOf(action.work);
        const Place other = placeOf(action.partner);
        Pipeline& pipeline = runOf(rank).pipeline;
        if (among(rank, other) == rank) return pipeline.sumBoth(own, other); // of which the two are held by their stages
        Meetings& meetings = meetings_[static_cast<std::size_t>(replicaOf(rank))];
        const auto [place, first] = meetings.try_emplace(std::minmax(own, other));
        Meeting& both = place->second;
        if (first) both = {at, {{own, pipeline.sharedGradients(own, other)}, {other, pipeline.sharedGradients(other, own)}}};
        pipeline.addShared(own, other, both.gradients[other]);
        deviceOf(rank).drain(); // before the other's are let go of
        if (!first) meetings.erase(place);
    }

    // What the way between the two takes: two passes of half the bytes each (machine_update.cpp has the formula).
    [[nodiscard]] TimeNs exchangeTime(const Action& action) const
    {
        const Rank one = run_.schedule.rankOf(action.work.flow, action.stage());
        const Rank other = run_.schedule.rankOf(action.partner.flow, action.partner.stage);
        if (one == other) return 0;
        const engine::StageCosts& stage = run_.costs.stages[index(action.stage())];
        if (action.partner.stage == action.stage()) {
            const engine::Link& way = run_.costs.machine.replica;
            return 2 * way.latency + way.occupied(stage.gradientBytes);
        }
        const Bytes bytes = dividesUpdate(run_.plan) ? run_.costs.tiedBytes / run_.plan.machine.replicas : run_.costs.tiedBytes;
        const engine::Links::Hop half = engine::Links(run_.costs, run_.schedule.ranks).hop(one, other, bytes / 2);
        return 2 * (half.latency + half.occupied);
    }

    [[nodiscard]] VirtualCopies& copiesOf(Rank rank) const { return *copies_[static_cast<std::size_t>(replicaOf(rank))]; }
    bool goOnBesideUntil(TimeNs time)
    {
        if (sums_) sums_->endUntil(time);
        return std::all_of(copies_.begin(), copies_.end(), [&](const auto& copies) { return copies->runUntil(time); }) && !run_.control.ending();
    }

    [[nodiscard]] VirtualRanks ranks() const { return {replicas_}; }
    [[nodiscard]] int replicaOf(Rank rank) const { return ranks().replicaOf(rank); }
    [[nodiscard]] Rank inReplica(Rank rank) const { return ranks().inReplica(rank); }
    [[nodiscard]] const Execution& runOf(Rank rank) const { return ranks().runOf(rank); }
    [[nodiscard]] RankDevice& deviceOf(Rank rank) const { return ranks().deviceOf(rank); }
    [[nodiscard]] LocalHandoff<Boundary>& handoffOf(Rank rank) const { return *handoffs_[static_cast<std::size_t>(replicaOf(rank))]; }
    // The one that holds the place in the same replica.
    [[nodiscard]] Rank among(Rank rank, const Place& place) const { return runOf(rank).among(run_.schedule.rankOf(place.flow, place.stage)); }

    [[nodiscard]] bool isLastGradient(const Execution& run, const Work& work) const
    {
        return sums_ && (work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad) &&
               run.pipeline.stage(placeOf(work)).isLast(work.microbatch.value);
    }

    bool execute(Rank rank, Step step)
    {
        RankState& state = ranks_[index(rank)];
        const Action& action = lists_[index(rank)][state.next];
        const TimeNs begin = std::max(state.clock, *readyAt(rank, action));
        ++state.next;
        if (engine::isCopy(action.kind())) {
            copiesOf(rank).ask(inReplica(rank), action.work, begin, step);
            return true;
        }
        if (engine::isSharding(action.kind())) return shard(rank, action.work, begin, step);
        MemoryLedger& ledger = runOf(rank).pipeline.ledger(inReplica(rank));
        EventRing<RunEvent>& ring = run_.recorder.ring(rank);
        memory_.flush(rank, ring);
        // the parts of a pair one after the other: each alone on its core
        state.clock = begin;
        bool done = true;
        engine::forEachWork(action, [&](const Work& work) { done = done && perform(rank, action, work, step, ledger, ring); });
        runOf(rank).pipeline.countActivations(inReplica(rank), action);
        return done;
    }

    // UNSHARD, RESHARD and REDUCE_GRAD take no time of their rank; what they take beside it begins now.
    bool shard(Rank rank, const Work& work, TimeNs at, Step step)
    {
        const Execution& run = runOf(rank);
        try {
            run.pipeline.execute(work, step, {});
            deviceOf(rank).drain();
            if (!deviceOf(rank).isCpu()) expectRoom(run.pipeline.ledger(inReplica(rank)));
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank, std::current_exception()));
            return false;
        }
        ranks_[index(rank)].clock = at;
        memory_.add(rank, at, run.pipeline.ledger(inReplica(rank)).held());
        if (!sums_ || work.kind == ActionKind::Reshard) {
            run_.recorder.ring(rank).push(actionEvent(step, work, {.begin = at, .end = at}));
            return true;
        }
        sums_->begin(rank, work, at);
        return true;
    }

    bool perform(Rank rank, const Action& action, const Work& work, Step step, MemoryLedger& ledger, EventRing<RunEvent>& ring)
    {
        RankState& state = ranks_[index(rank)];
        const Execution& run = runOf(rank);
        Arrival<Boundary> input{{}, -1};
        if (const std::optional<BoxAddress> box = inputBox(work, run_.schedule.stages())) {
            std::optional<Arrival<Boundary>> arrival = handoffOf(rank).take(*box);
            if (!arrival) return false;
            input = std::move(*arrival);
        }
        ActionTimes times{.begin = state.clock, .ready = input.available, .reloaded = copiesOf(rank).reloaded(work),
                          .gathered = gatheredAt(rank, work).value_or(-1)};
        if (sums_ && work.kind == ActionKind::Optimizer) times.ready = *sums_->summedAt(rank, placeOf(work));
        ledger.watchPeak();
        memory_.add(rank, times.begin, ledger.held());

        // read around the action's time, not within it
        const TimeNs computedBefore = run_.cpuClock.now();
        const TimeNs realBegin = run_.clock.now();
        at::Tensor output;
        TimeNs worked = 0;
        TimeNs workBegin = realBegin;
        RankDevice::Fetched given; // until the device is through, as what is used for the last time
        std::vector<c10::Storage> used;
        try {
            const DeviceWatch::Wait wait(deviceOf(rank).isCpu() ? nullptr : run.watch, rank, step, work);
            worked = timed(deviceOf(rank), times.begin, [&] {
                workBegin = run_.clock.now();
                const OperatorRecording::Scope recorded(operators_ && deviceOf(rank).isCpu() ? &*operators_ : nullptr);
                if (work.kind == ActionKind::AllReduce) return sumGradients(rank, action, times.begin);
                given = fetch(rank, work, std::move(input.payload), ledger);
                if (!deviceOf(rank).isCpu()) {
                    inUse_[index(rank)].hold(work, given.tensor);
                    if (times.reloaded >= 0) inUse_[index(rank)].hold(work, run.pipeline.cameBack(work));
                    used = inUse_[index(rank)].usedUp(work, run.schedule.inference());
                }
                output = run.pipeline.execute(work, step, std::exchange(given.tensor, {}));
            });
            given = {};
            used.clear();
            expectRoom(ledger);
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank, std::current_exception()));
            return false;
        }
        const double factor = work.kind == ActionKind::AllReduce ? 1 : run_.trouble.factorOf(work.stage);
        const auto taken = static_cast<TimeNs>(std::llround(static_cast<double>(worked) * factor));
        const int steps = run_.plan.run.steps - run_.firstStep;
        if (deviceOf(rank).isCpu() && step.value - run_.firstStep >= static_cast<int>(stepsLeftOut(static_cast<std::size_t>(steps))))
            busy_.add({.taken = worked, .computed = run_.cpuClock.now() - computedBefore});
        times.end = times.begin + taken + (work.kind == ActionKind::AllReduce ? exchangeTime(action) : 0);
        state.clock = times.end;
        if (operators_) postOperators(rank, step, times.begin - workBegin);
        if (const auto peak = ledger.peak()) memory_.add(rank, times.begin + (peak->time - realBegin), peak->bytes);
        memory_.add(rank, times.end, ledger.held());
        if (const std::optional<BoxAddress> box = outputBox(work, run_.schedule.stages()))
            times.available = handOver(*box, rank, std::move(output), times.end);
        RunEvent event = actionEvent(step, work, times);
        if (isLastGradient(run, work)) event.value[RunEvent::kLast] = 1;
        (work.kind == ActionKind::AllReduce ? collectivesOf(rank) : ring).push(event);
        if (sums_) sums_->settle(rank, work, times.end);
        return true;
    }

    // At their places in virtual time.
    void postOperators(Rank rank, Step step, TimeNs shift)
    {
        std::vector<OperatorSpan> spans = operators_->take();
        for (OperatorSpan& each : spans) each = {.name = each.name, .begin = each.begin + shift, .end = each.end + shift};
        run_.recorder.post(OperatorBatch{.rank = rank, .step = step, .spans = std::move(spans)});
    }

    // On a GPU it is alone there, and timed by it.
    template <class Call>
    TimeNs timed(const RankDevice& device, TimeNs virtualBegin, const Call& call)
    {
        const RankDevice::Scope here = device.enter();
        const TimeNs realBegin = run_.clock.now();
        const DeviceMark begin = device.mark();
        if (sums_) sums_->beginAction({virtualBegin, realBegin, begin});
        call();
        if (sums_) sums_->endAction();
        if (device.isCpu()) return run_.clock.now() - realBegin;
        const DeviceMark end = device.mark();
        device.drain();
        if (sums_) sums_->giveFromDevice();
        return end->time() - begin->time();
    }

    [[nodiscard]] RankDevice::Fetched fetch(Rank rank, const Work& work, Boundary from, MemoryLedger& ledger) const
    {
        const AllocationScope scope({.ledger = &ledger, .memory = arrivesAs(work.kind)});
        return deviceOf(rank).fetch(std::move(from));
    }

    bool readLosses(Step step)
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            if (deviceOf(Rank{r}).isCpu()) continue;
            Work work;
            try {
                runOf(Rank{r}).pipeline.readLosses(inReplica(Rank{r}), step, work);
            } catch (...) {
                run_.control.fail(describeFailure(work, step, Rank{r}, std::current_exception()));
                return false;
            }
        }
        return true;
    }

    TimeNs handOver(const BoxAddress& box, Rank from, at::Tensor output, TimeNs end)
    {
        const bool sameRank = run_.schedule.rankOf(box.flow, box.receiver) == inReplica(from);
        return handoffOf(from).put(box, Boundary{std::move(output)}, sameRank ? end : end + run_.costs.transfer);
    }

    void sampleAll(TimeNs time)
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            memory_.add(Rank{r}, time, runOf(Rank{r}).pipeline.ledger(inReplica(Rank{r})).held());
            memory_.flush(Rank{r}, run_.recorder.ring(Rank{r}));
        }
    }

    const std::vector<Execution>& replicas_;
    const Execution& run_; // the first: what they share
    std::vector<std::unique_ptr<LocalHandoff<Boundary>>> handoffs_; // by replica
    std::vector<Meetings> meetings_; // by replica, those that one of the two has gone through
    std::vector<std::vector<Action>> lists_; // by rank, of a step
    std::vector<RankState> ranks_;
    std::vector<InputsInUse> inUse_; // by rank, of GPUs
    std::optional<EmulatedSums> sums_; // where there are replicas
    TimeNs frontier_ = 0; // the start of the last action
    VirtualMemory memory_;
    std::vector<std::unique_ptr<VirtualCopies>> copies_; // by replica
    BusyWatch busy_;
    std::optional<OperatorRecording> operators_; // where they are recorded
};

} // namespace

void runEmulated(const std::vector<Execution>& replicas)
{
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1); // so that an action costs what it costs in mode threads
    Emulation emulation(replicas);
    emulation.runSteps();
    if (emulation.busy().noisy()) replicas.front().recorder.post(NoteRecord{busyNote(emulation.busy().excess())});
}

} // namespace stagecraft::runtime
