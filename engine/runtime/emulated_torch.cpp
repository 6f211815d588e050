// SPDX-License-Identifier: Apache-2.0
//
// Virtual ranks on virtual clocks. Of all next actions whose input is there, the one with the smallest virtual start is
// executed for real, alone, and timed; its rank's clock moves by the time it took. No action can come to start before one
// that ran already: what is not yet possible waits for an action that starts, and ends, later. Therefore what is held when
// an action runs is what the ranks hold at that virtual moment.
//
//   rank 0  |F0 |F1 |   |B0   |        rank clock = virtual end of its last action
//   rank 1      t|F0 |B0   |           t: transfer, from the cost table; stages of one rank hand over at once
#include "engine/runtime/executor_torch.h"

#include "engine/runtime/boundary.h"
#include "engine/runtime/busy_watch.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/run_messages.h"
#include "engine/schedule/milestones.h"
#include "engine/simulate/links.h"
#include "engine/transport/local_handoff.h"
#include "traces/analysis/step_times.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

namespace {

class Emulation {
public:
    explicit Emulation(const Execution& run)
        : run_(run),
          handoff_(run.schedule.stages(), mostUnits(run.schedule), {}, static_cast<int>(run.schedule.flows().size())),
          ranks_(static_cast<std::size_t>(run.schedule.ranks))
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) lists_.push_back(rankWork(run.schedule, Rank{r}, endsOf(run.plan.model), clippingOf(run.plan.run)));
    }

    void runSteps()
    {
        TimeNs now = 0;
        for (int step = run_.firstStep; step < run_.plan.run.steps; ++step) {
            if (step > run_.firstStep) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
            const TimeNs begin = now;
            for (RankState& rank : ranks_) rank = {0, begin};
            sampleAll(begin);
            if (!runStep(Step{step})) return;
            for (const RankState& rank : ranks_) now = std::max(now, rank.clock);
            sampleAll(now);
            run_.keeper.finish(Step{step}, {begin, now});
        }
    }

    [[nodiscard]] const BusyWatch& busy() const { return busy_; }

private:
    struct RankState {
        std::size_t next = 0; // in its list
        TimeNs clock = 0;
    };

    // Of two ranks that sum what each has of copies of the same weights.
    struct Meeting {
        TimeNs at = 0;
        std::map<Place, std::vector<at::Tensor>> gradients;
    };

    struct Next {
        Rank rank{};
        TimeNs start = 0;
    };

    bool runStep(Step step)
    {
        std::size_t left = 0;
        for (const auto& list : lists_) left += list.size();
        while (left > 0) {
            const Next next = earliest();
            if (!run_.control.passGate(next.start)) return false;
            const bool ofAll = sharesNorm(nextOf(next.rank));
            if (!(ofAll ? clipGradients(step) : execute(next.rank, step))) return false;
            left -= ofAll ? ranks_.size() : 1;
        }
        return !run_.control.ending();
    }

    // A schedule that passed validation always has one.
    [[nodiscard]] Next earliest()
    {
        std::optional<Next> best;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            const RankState& rank = ranks_[r];
            if (rank.next == lists_[r].size()) continue;
            const std::optional<TimeNs> ready = readyAt(lists_[r][rank.next]);
            if (!ready) continue;
            const TimeNs start = std::max(rank.clock, *ready);
            if (!best || start < best->start) best = Next{Rank{r}, start};
        }
        return *best;
    }

    [[nodiscard]] const Action& nextOf(Rank rank) const { return lists_[index(rank)][ranks_[index(rank)].next]; }

    // When all that the action takes is there; nothing while some of it is not made.
    [[nodiscard]] std::optional<TimeNs> readyAt(const Action& action)
    {
        if (sharesNorm(action)) return meetingOfAll();
        if (action.kind() == ActionKind::AllReduce) return meeting(action);
        TimeNs ready = 0;
        bool there = true;
        engine::forEachWork(action, [&](const Work& work) {
            const std::optional<BoxAddress> box = inputBox(work, run_.schedule.stages());
            if (!box) return;
            if (handoff_.full(*box)) ready = std::max(ready, handoff_.available(*box));
            else there = false;
        });
        return there ? std::optional(ready) : std::nullopt;
    }

    // The moment at which both ranks that hold a copy of the weights have come to the sum of their gradients.
    [[nodiscard]] std::optional<TimeNs> meeting(const Action& action) const
    {
        const Place own = placeOf(action.work);
        const Place other = placeOf(action.partner);
        if (const auto begun = meetings_.find(std::minmax(own, other)); begun != meetings_.end()) return begun->second.at;
        const RankState& rank = ranks_[index(rankOf(own))];
        const std::size_t r = index(rankOf(other));
        if (rankOf(own) == rankOf(other)) return rank.clock; // one for both
        if (ranks_[r].next == lists_[r].size() || lists_[r][ranks_[r].next] != Action{action.partner, action.work}) return std::nullopt;
        return std::max(rank.clock, ranks_[r].clock);
    }

    // The moment at which the last rank has come to the norm of all gradients.
    [[nodiscard]] std::optional<TimeNs> meetingOfAll() const
    {
        TimeNs all = 0;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            if (ranks_[r].next == lists_[r].size() || !sharesNorm(nextOf(Rank{r}))) return std::nullopt;
            all = std::max(all, ranks_[r].clock);
        }
        return all;
    }

    // For all ranks at once: each begins when it has come, and all end together, when the last one knows its part.
    bool clipGradients(Step step)
    {
        TimeNs end = 0;
        try {
            at::Tensor squares;
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                const TimeNs realBegin = run_.clock.now();
                const at::Tensor own = run_.pipeline.squaredNorms(Rank{r});
                squares = squares.defined() ? squares + own : own;
                end = std::max(end, ranks_[r].clock + run_.clock.now() - realBegin);
            }
            for (std::size_t r = 0; r < ranks_.size(); ++r) run_.pipeline.clipGradients(Rank{r}, squares);
        } catch (...) {
            run_.control.fail(describeFailure(nextOf(Rank{0}).work, step, Rank{0}, std::current_exception()));
            return false;
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            RankState& rank = ranks_[r];
            run_.recorder.ring(Rank{r}).push(actionEvent(step, nextOf(Rank{r}).work, {.begin = rank.clock, .end = end}));
            run_.recorder.ring(Rank{r}).push(memoryEvent(end, run_.pipeline.ledger(Rank{r}).held()));
            ++rank.next;
            rank.clock = end;
        }
        return true;
    }

    // Each of the two adds what the other had before.
    void sumGradients(const Action& action, TimeNs at)
    {
        const Place own = placeOf(action.work);
        const Place other = placeOf(action.partner);
        if (rankOf(own) == rankOf(other)) return run_.pipeline.sumBoth(own, other);
        const auto [place, first] = meetings_.try_emplace(std::minmax(own, other));
        Meeting& both = place->second;
        if (first)
            both = {at, {{own, run_.pipeline.sharedGradients(own, other)}, {other, run_.pipeline.sharedGradients(other, own)}}};
        run_.pipeline.addShared(own, other, both.gradients[other]);
        if (!first) meetings_.erase(place);
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
        const engine::Links::Hop half = engine::Links(run_.costs, run_.schedule.ranks).hop(one, other, run_.costs.tiedBytes / 2);
        return 2 * (half.latency + half.occupied);
    }

    [[nodiscard]] Rank rankOf(const Place& place) const { return run_.schedule.rankOf(place.flow, place.stage); }

    bool execute(Rank rank, Step step)
    {
        RankState& state = ranks_[index(rank)];
        const Action& action = lists_[index(rank)][state.next];
        const TimeNs begin = std::max(state.clock, *readyAt(action));
        ++state.next;
        MemoryLedger& ledger = run_.pipeline.ledger(rank);
        EventRing<RunEvent>& ring = run_.recorder.ring(rank);
        // the parts of a pair one after the other: each alone on its core
        state.clock = begin;
        bool done = true;
        engine::forEachWork(action, [&](const Work& work) { done = done && perform(rank, action, work, step, ledger, ring); });
        return done;
    }

    bool perform(Rank rank, const Action& action, const Work& work, Step step, MemoryLedger& ledger, EventRing<RunEvent>& ring)
    {
        RankState& state = ranks_[index(rank)];
        Arrival<at::Tensor> input{{}, -1};
        if (const std::optional<BoxAddress> box = inputBox(work, run_.schedule.stages())) {
            std::optional<Arrival<at::Tensor>> arrival = handoff_.take(*box);
            if (!arrival) return false;
            input = std::move(*arrival);
        }
        ActionTimes times{.begin = state.clock, .ready = input.available};
        ledger.watchPeak();
        ring.push(memoryEvent(times.begin, ledger.held()));

        // read around the action's time, not within it
        const TimeNs computedBefore = run_.cpuClock.now();
        const TimeNs realBegin = run_.clock.now();
        at::Tensor output;
        try {
            if (work.kind == ActionKind::AllReduce) sumGradients(action, times.begin);
            else output = run_.pipeline.execute(work, step, std::move(input.payload));
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank, std::current_exception()));
            return false;
        }
        const TimeNs taken = run_.clock.now() - realBegin;
        const int steps = run_.plan.run.steps - run_.firstStep;
        if (step.value - run_.firstStep >= static_cast<int>(stepsLeftOut(static_cast<std::size_t>(steps))))
            busy_.add({.taken = taken, .computed = run_.cpuClock.now() - computedBefore});
        times.end = times.begin + taken + (work.kind == ActionKind::AllReduce ? exchangeTime(action) : 0);
        state.clock = times.end;
        if (const auto peak = ledger.peak()) ring.push(memoryEvent(times.begin + (peak->time - realBegin), peak->bytes));
        ring.push(memoryEvent(times.end, ledger.held()));
        if (const std::optional<BoxAddress> box = outputBox(work, run_.schedule.stages()))
            times.available = handOver(*box, rank, std::move(output), times.end);
        ring.push(actionEvent(step, work, times));
        return true;
    }

    TimeNs handOver(const BoxAddress& box, Rank from, at::Tensor output, TimeNs end)
    {
        const bool sameRank = run_.schedule.rankOf(box.flow, box.receiver) == from;
        return handoff_.put(box, std::move(output), sameRank ? end : end + run_.costs.transfer);
    }

    void sampleAll(TimeNs time)
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            run_.recorder.ring(Rank{r}).push(memoryEvent(time, run_.pipeline.ledger(Rank{r}).held()));
    }

    const Execution& run_;
    LocalHandoff<at::Tensor> handoff_;
    std::vector<std::vector<Action>> lists_; // by rank, of a step
    std::map<std::pair<Place, Place>, Meeting> meetings_; // that one of the two has gone through
    std::vector<RankState> ranks_;
    BusyWatch busy_;
};

} // namespace

void runEmulated(const Execution& run)
{
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1); // so that an action costs what it costs in mode threads
    Emulation emulation(run);
    emulation.runSteps();
    if (emulation.busy().noisy()) run.recorder.post(NoteRecord{busyNote(emulation.busy().excess())});
}

} // namespace stagecraft::runtime
