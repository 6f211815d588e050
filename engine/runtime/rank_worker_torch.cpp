// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_worker_torch.h"

#include "engine/runtime/boundary.h"
#include "engine/runtime/pair_helper.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/replica_rank_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/schedule/milestones.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

namespace {

// The backward stays on its thread: elsewhere its allocations would have no owner.
void settleThread()
{
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1);
}

class RankWorker {
public:
    RankWorker(const Execution& run, const RankLinks& links, Rank rank)
        : run_(run), links_(links), own_(rank), rank_(run.among(rank)),
          list_(rankWork(run.schedule, rank, endsOf(run.plan.model), clippingOf(run.plan.run), run.plan.machine.replicas)),
          ring_(run.recorder.ring(rank_)),
          ledger_(run.pipeline.ledger(rank))
    {
        const bool pairs = std::any_of(list_.begin(), list_.end(), [](const Action& a) { return a.kind() == ActionKind::Overlap; });
        if (pairs) helper_.emplace(&settleThread);
        if (links.sums != nullptr && !run.schedule.inference()) replica_.emplace(run, *links.sums, rank);
    }

    void work()
    {
        settleThread();
        for (int step = run_.firstStep; links_.meeting.meet(rank_, step, end_); ++step) {
            sampleMemory(run_.clock.now()); // all have let go of the last step
            if (step == run_.plan.run.steps || !executeStep(Step{step})) return;
        }
    }

private:
    // One of the computing actions, ready to go.
    struct Task {
        Work work;
        Arrival<at::Tensor> input{{}, -1};
        ActionTimes times{};
        std::exception_ptr error{};
    };

    bool executeStep(Step step)
    {
        if (replica_) replica_->begin(step);
        const bool done = std::all_of(list_.begin(), list_.end(), [&](const Action& action) {
            if (sharesNorm(action)) return clipGradients(action.work, step);
            return action.kind() == ActionKind::AllReduce ? sumGradients(action, step) : executeAction(action, step);
        });
        if (!done || !replica_) return done;
        const std::optional<TimeNs> whole = replica_->allWeights();
        if (whole) end_ = std::max(end_, *whole);
        return whole.has_value();
    }

    bool executeAction(const Action& action, Step step)
    {
        std::vector<Task> tasks;
        engine::forEachWork(action, [&](const Work& work) { tasks.push_back({work}); });
        for (Task& task : tasks)
            if (!waitForInput(task) || !waitForSums(task)) return false;
        if (!run_.control.enter(rank_)) return false;

        const TimeNs begin = run_.clock.now();
        ledger_.watchPeak();
        const BytesByClass before = ledger_.held();
        if (tasks.size() == 2) helper_->start([&] { perform(tasks.front(), step); }); // the forward of a pair
        perform(tasks.back(), step);
        if (tasks.size() == 2) helper_->wait();
        const BytesByClass after = ledger_.held();
        for (const Task& task : tasks) {
            if (!task.error) continue;
            run_.control.fail(describeFailure(task.work, step, rank_, task.error));
            return false;
        }

        ring_.push(memoryEvent(begin, before));
        if (const auto peak = ledger_.peak()) ring_.push(memoryEvent(peak->time, peak->bytes));
        TimeNs end = begin;
        for (const Task& task : tasks) end = std::max(end, task.times.end);
        ring_.push(memoryEvent(end, after));
        for (const Task& task : tasks) {
            const bool beside = tasks.size() == 2 && &task == &tasks.front();
            RunEvent event = actionEvent(step, task.work, task.times, beside ? 1 : 0);
            if (replica_ && replica_->isLast(task.work)) event.value[RunEvent::kLast] = 1;
            ring_.push(event);
        }
        end_ = end;
        if (replica_ && action.kind() == ActionKind::Optimizer) replica_->giveWeights(placeOf(action.work));
        return true;
    }

    bool waitForInput(Task& task)
    {
        const std::optional<BoxAddress> box = inputBox(task.work, run_.schedule.stages());
        if (!box) return true;
        if (!links_.handoff.full(*box)) run_.control.rest(rank_);
        std::optional<Arrival<at::Tensor>> arrival = links_.handoff.take(*box);
        if (!arrival) return false;
        task.input = std::move(*arrival);
        return true;
    }

    bool waitForSums(Task& task)
    {
        if (!replica_ || task.work.kind != ActionKind::Optimizer) return true;
        const std::optional<TimeNs> since = replica_->gradientsOf(placeOf(task.work));
        if (since) task.input.available = *since;
        return since.has_value();
    }

    // On whatever thread; hands over as soon as it is done.
    void perform(Task& task, Step step)
    {
        try {
            task.times = {.begin = run_.clock.now(), .ready = task.input.available};
            at::Tensor output = run_.pipeline.execute(task.work, step, std::move(task.input.payload));
            task.times.end = run_.clock.now();
            const std::optional<BoxAddress> box = outputBox(task.work, run_.schedule.stages());
            if (box) task.times.available = links_.handoff.put(*box, std::move(output), run_.clock);
        } catch (...) {
            task.error = std::current_exception();
        }
    }

    // With the rank that holds the other copy: each gives its own and adds the other's. Where that is this rank, both at once.
    bool sumGradients(const Action& action, Step step)
    {
        const Place own = placeOf(action.work);
        const Place other = placeOf(action.partner);
        const bool both = run_.schedule.rankOf(other.flow, other.stage) == own_;
        if (replica_ && !replica_->allGradients()) return false; // each copy's own sum comes first
        std::optional<Arrival<std::vector<at::Tensor>>> arrival;
        if (!both) {
            const BoxAddress box = gradientBox(action.work, action.partner);
            links_.gradients.put(gradientBox(action.partner, action.work), run_.pipeline.sharedGradients(own, other), run_.clock);
            if (!links_.gradients.full(box)) run_.control.rest(rank_);
            arrival = links_.gradients.take(box);
            if (!arrival) return false;
        }
        if (!run_.control.enter(rank_)) return false;
        ActionTimes times{.begin = run_.clock.now()};
        try {
            if (both) run_.pipeline.sumBoth(own, other);
            else run_.pipeline.addShared(own, other, arrival->payload);
        } catch (...) {
            run_.control.fail(describeFailure(action.work, step, rank_, std::current_exception()));
            return false;
        }
        arrival.reset();
        times.end = run_.clock.now();
        sampleMemory(times.end);
        collectives().push(actionEvent(step, action.work, times));
        end_ = times.end;
        return true;
    }

    // With all ranks: the squares of the norms go from the first to the last, each adds those of its layers, and what they come to goes
    // back. Adding is exact, for every layer is somebody's and 0 for the others.
    bool clipGradients(const Work& work, Step step)
    {
        const auto box = [](Direction direction, int rank) { return BoxAddress{direction, Stage{rank}, MicroBatch{0}, Flow::Single}; };
        if (replica_ && !replica_->allGradients()) return false;
        if (!run_.control.enter(rank_)) return false;
        ActionTimes times{.begin = run_.clock.now()}; // it lasts until the last rank has come
        try {
            at::Tensor squares = run_.pipeline.squaredNorms(own_);
            if (own_ > Rank{0}) {
                const std::optional<at::Tensor> before = takeNorms(box(Direction::Forward, own_.value));
                if (!before) return false;
                squares = squares + *before;
            }
            if (own_.value + 1 < run_.schedule.ranks) {
                links_.norms.put(box(Direction::Forward, own_.value + 1), std::move(squares), run_.clock);
                const std::optional<at::Tensor> all = takeNorms(box(Direction::Backward, own_.value));
                if (!all) return false;
                squares = *all;
            }
            if (own_ > Rank{0}) links_.norms.put(box(Direction::Backward, own_.value - 1), squares, run_.clock);
            times.ready = run_.clock.now();
            run_.pipeline.clipGradients(own_, squares);
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank_, std::current_exception()));
            return false;
        }
        times.end = run_.clock.now();
        sampleMemory(times.end);
        RunEvent event = actionEvent(step, work, times);
        event.value[RunEvent::kOfAll] = 1;
        collectives().push(event);
        end_ = times.end;
        return true;
    }

    std::optional<at::Tensor> takeNorms(const BoxAddress& box)
    {
        if (!links_.norms.full(box)) run_.control.rest(rank_);
        std::optional<Arrival<at::Tensor>> arrival = links_.norms.take(box);
        if (!arrival || !run_.control.enter(rank_)) return std::nullopt;
        return std::move(arrival->payload);
    }

    // For what lies on the lane of collectives: where a second thread writes that, it has nothing to write while this one does.
    [[nodiscard]] EventRing<RunEvent>& collectives() { return replica_ ? run_.recorder.collectiveRing(rank_) : ring_; }

    void sampleMemory(TimeNs time) { ring_.push(memoryEvent(time, ledger_.held())); }

    const Execution& run_;
    const RankLinks links_;
    const Rank own_;  // of the replica
    const Rank rank_; // of all
    std::vector<Action> list_; // of a step
    EventRing<RunEvent>& ring_;
    MemoryLedger& ledger_;
    TimeNs end_ = 0; // of the last action
    std::optional<ReplicaRank> replica_;
    std::optional<PairHelper> helper_;
};

} // namespace

void runRank(const Execution& run, const RankLinks& links, Rank rank)
{
    try {
        RankWorker(run, links, rank).work();
    } catch (...) {
        run.control.fail(describeFailure("the work between two steps", std::current_exception()));
    }
    run.control.rest(run.among(rank));
    run.control.leave();
}

} // namespace stagecraft::runtime
