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

#include "engine/runtime/busy_watch.h"
#include "engine/runtime/run_messages.h"
#include "engine/transport/local_handoff.h"
#include "traces/analysis/step_times.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

namespace {

class Emulation {
public:
    explicit Emulation(const Execution& run)
        : run_(run), handoff_(run.schedule.stages(), run.schedule.microbatches, {}),
          lists_(static_cast<std::size_t>(run.schedule.ranks)), ranks_(lists_.size())
    {
        for (std::size_t r = 0; r < lists_.size(); ++r) {
            for (const Action& action : run.schedule.order[r]) lists_[r].push_back(action.work);
            for (const Stage stage : run.pipeline.stagesOf(Rank{r}))
                lists_[r].push_back(makeAction(ActionKind::Optimizer, stage).work);
        }
    }

    void runSteps()
    {
        TimeNs now = 0;
        for (int step = 0; step < run_.plan.run.steps; ++step) {
            if (step > 0) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
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

    struct Next {
        Rank rank{};
        TimeNs start = 0;
    };

    bool runStep(Step step)
    {
        std::size_t left = 0;
        for (const auto& list : lists_) left += list.size();
        for (; left > 0; --left) {
            const Next next = earliest();
            if (!run_.control.passGate(next.start) || !execute(next.rank, step)) return false;
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
            const Work& work = lists_[r][rank.next];
            TimeNs start = rank.clock;
            if (run_.pipeline.takesInput(work)) {
                const BoxAddress box = inputBox(work);
                if (!handoff_.full(box)) continue;
                start = std::max(start, handoff_.available(box));
            }
            if (!best || start < best->start) best = Next{Rank{r}, start};
        }
        return *best;
    }

    bool execute(Rank rank, Step step)
    {
        RankState& state = ranks_[index(rank)];
        const Work& work = lists_[index(rank)][state.next++];
        Arrival<at::Tensor> input{{}, -1};
        if (run_.pipeline.takesInput(work)) {
            std::optional<Arrival<at::Tensor>> arrival = handoff_.take(inputBox(work));
            if (!arrival) return false;
            input = std::move(*arrival);
        }
        ActionTimes times{.begin = std::max(state.clock, input.available), .ready = input.available};
        MemoryLedger& ledger = run_.pipeline.ledger(rank);
        EventRing<RunEvent>& ring = run_.recorder.ring(rank);
        ledger.watchPeak();
        ring.push(memoryEvent(times.begin, ledger.held()));

        // read around the action's time, not within it
        const TimeNs computedBefore = run_.cpuClock.now();
        const TimeNs realBegin = run_.clock.now();
        at::Tensor output;
        try {
            output = run_.pipeline.execute(work, step, std::move(input.payload));
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank, std::current_exception()));
            return false;
        }
        const TimeNs taken = run_.clock.now() - realBegin;
        if (step.value >= static_cast<int>(stepsLeftOut(static_cast<std::size_t>(run_.plan.run.steps))))
            busy_.add({.taken = taken, .computed = run_.cpuClock.now() - computedBefore});
        times.end = times.begin + taken;
        state.clock = times.end;
        if (const auto peak = ledger.peak()) ring.push(memoryEvent(times.begin + (peak->time - realBegin), peak->bytes));
        ring.push(memoryEvent(times.end, ledger.held()));
        if (output.defined()) times.available = handOver(work, std::move(output), times.end);
        ring.push(actionEvent(step, work, times));
        return true;
    }

    TimeNs handOver(const Work& work, at::Tensor output, TimeNs end)
    {
        const bool forward = work.kind == ActionKind::Forward;
        const Stage receiver{work.stage.value + (forward ? 1 : -1)};
        const bool sameRank =
            run_.schedule.stageToRank[index(receiver)] == run_.schedule.stageToRank[index(work.stage)];
        return handoff_.put({forward ? Direction::Forward : Direction::Backward, receiver, work.microbatch},
                            std::move(output), sameRank ? end : end + run_.transfer);
    }

    static BoxAddress inputBox(const Work& work)
    {
        return {work.kind == ActionKind::Forward ? Direction::Forward : Direction::Backward, work.stage, work.microbatch};
    }

    void sampleAll(TimeNs time)
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            run_.recorder.ring(Rank{r}).push(memoryEvent(time, run_.pipeline.ledger(Rank{r}).held()));
    }

    const Execution& run_;
    LocalHandoff<at::Tensor> handoff_;
    std::vector<std::vector<Work>> lists_; // by rank, the optimizers at the end
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
