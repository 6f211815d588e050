// SPDX-License-Identifier: Apache-2.0
//
// A thread per rank. Each goes through its list in order: waits for its input, executes, hands its output over; at the end
// of a step come the optimizers of its stages, then all ranks meet. Two actions that run together (OVERLAP_F_B) share the rank
// between its thread and a second one.
//
//   rank 0   F0 F1 ....... B0 B1 Opt |          | F0 F1 ...
//   rank 1      F0 B0 F1 B1 Opt .... | barrier  |    F0 B0 ...
//                                      last one in: span, loss, check
#include "engine/runtime/executor_torch.h"

#include "engine/runtime/boundary.h"
#include "engine/runtime/pair_helper.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/run_messages.h"
#include "engine/schedule/milestones.h"
#include "engine/transport/step_barrier.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

namespace stagecraft::runtime {

using namespace traces;

namespace {

struct Shared {
    Shared(const Execution& execution, const Patience& patience)
        : run(execution), handoff(run.schedule.stages(), mostUnits(run.schedule), patience, static_cast<int>(run.schedule.flows().size())),
          gradients(run.schedule.stages(), 1, patience), barrier(run.schedule.ranks, patience),
          rankEnd(static_cast<std::size_t>(run.schedule.ranks))
    {
    }
    void cancel()
    {
        handoff.cancel();
        gradients.cancel();
        barrier.cancel();
    }

    const Execution& run;
    LocalHandoff<at::Tensor> handoff;
    LocalHandoff<std::vector<at::Tensor>> gradients; // between the two copies of a stage: down to up is forward
    StepBarrier barrier;
    TimeNs stepBegin = 0;        // written by the last one at the barrier
    std::vector<TimeNs> rankEnd; // of the step; each rank its own
};

// The backward stays on its thread: elsewhere its allocations would have no owner.
void settleThread()
{
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1);
}

class RankWorker {
public:
    RankWorker(Shared& shared, Rank rank)
        : shared_(shared), run_(shared.run), rank_(rank), list_(rankWork(run_.schedule, rank)), ring_(run_.recorder.ring(rank)),
          ledger_(run_.pipeline.ledger(rank))
    {
        const bool pairs = std::any_of(list_.begin(), list_.end(), [](const Action& a) { return a.kind() == ActionKind::Overlap; });
        if (pairs) helper_.emplace(&settleThread);
    }

    void work()
    {
        settleThread();
        for (int step = 0;; ++step) {
            // The last one goes on executing, so that nothing is called paused while it checks the step.
            if (!shared_.barrier.arrive([&] { betweenSteps(step); }, [&] { run_.control.rest(rank_); })) return;
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

    void betweenSteps(int step)
    {
        if (step > 0) {
            const TimeNs end = *std::max_element(shared_.rankEnd.begin(), shared_.rankEnd.end());
            run_.keeper.finish(Step{step - 1}, {shared_.stepBegin, end});
        }
        if (step == run_.plan.run.steps) return;
        if (step > 0) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
        if (run_.control.enter(rank_)) shared_.stepBegin = run_.clock.now(); // a pause here is before the step
    }

    bool executeStep(Step step)
    {
        return std::all_of(list_.begin(), list_.end(), [&](const Action& action) {
            return action.kind() == ActionKind::AllReduce ? sumGradients(action.work, step) : executeAction(action, step);
        });
    }

    bool executeAction(const Action& action, Step step)
    {
        std::vector<Task> tasks;
        engine::forEachWork(action, [&](const Work& work) { tasks.push_back({work}); });
        for (Task& task : tasks)
            if (!waitForInput(task)) return false;
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
            ring_.push(actionEvent(step, task.work, task.times, beside ? 1 : 0));
        }
        shared_.rankEnd[index(rank_)] = end;
        return true;
    }

    bool waitForInput(Task& task)
    {
        const std::optional<BoxAddress> box = inputBox(task.work, run_.schedule.stages());
        if (!box) return true;
        if (!shared_.handoff.full(*box)) run_.control.rest(rank_);
        std::optional<Arrival<at::Tensor>> arrival = shared_.handoff.take(*box);
        if (!arrival) return false;
        task.input = std::move(*arrival);
        return true;
    }

    // On whatever thread; hands over as soon as it is done.
    void perform(Task& task, Step step)
    {
        try {
            task.times = {.begin = run_.clock.now(), .ready = task.input.available};
            at::Tensor output = run_.pipeline.execute(task.work, step, std::move(task.input.payload));
            task.times.end = run_.clock.now();
            const std::optional<BoxAddress> box = outputBox(task.work, run_.schedule.stages());
            if (box) task.times.available = shared_.handoff.put(*box, std::move(output), run_.clock);
        } catch (...) {
            task.error = std::current_exception();
        }
    }

    // With the rank that holds the other copy of the stage: each gives its own and adds the other's.
    bool sumGradients(const Work& work, Step step)
    {
        const Place place{work.flow, work.stage};
        const bool up = work.flow == Flow::Up;
        const auto box = [&](bool toUp) {
            return BoxAddress{toUp ? Direction::Forward : Direction::Backward, work.stage, MicroBatch{0}, Flow::Single};
        };
        shared_.gradients.put(box(!up), run_.pipeline.stage(place).gradients(), run_.clock);
        if (!shared_.gradients.full(box(up))) run_.control.rest(rank_);
        std::optional<Arrival<std::vector<at::Tensor>>> other = shared_.gradients.take(box(up));
        if (!other || !run_.control.enter(rank_)) return false;
        ActionTimes times{.begin = run_.clock.now()};
        try {
            run_.pipeline.sumGradients(place, other->payload);
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank_, std::current_exception()));
            return false;
        }
        other->payload.clear();
        times.end = run_.clock.now();
        sampleMemory(times.end);
        ring_.push(actionEvent(step, work, times));
        shared_.rankEnd[index(rank_)] = times.end;
        return true;
    }

    void sampleMemory(TimeNs time) { ring_.push(memoryEvent(time, ledger_.held())); }

    Shared& shared_;
    const Execution& run_;
    Rank rank_;
    std::vector<Action> list_; // of a step
    EventRing<RunEvent>& ring_;
    MemoryLedger& ledger_;
    std::optional<PairHelper> helper_;
};

// A thread that cannot be started fails the run: those that were wait for it.
void start(std::vector<std::jthread>& threads, Shared& shared, Rank rank)
{
    const Execution& run = shared.run;
    const std::string name = "rank " + std::to_string(rank.value);
    try {
        run.pipeline.meetFaultOfThread(rank);
        threads.emplace_back([&shared, &run, rank] {
            try {
                RankWorker(shared, rank).work();
            } catch (...) {
                run.control.fail(describeFailure("the work between two steps", std::current_exception()));
            }
            run.control.rest(rank);
            run.control.leave();
        });
    } catch (const std::system_error& error) {
        return run.control.fail(threadFailure(name, error.code().message()));
    } catch (...) {
        return run.control.fail(describeFailure("starting the threads of the ranks", std::current_exception()));
    }
    pthread_setname_np(threads.back().native_handle(), name.c_str());
}

} // namespace

void runOnThreads(const Execution& run)
{
    const int ranks = run.schedule.ranks;
    const Patience patience = patienceFor(ranks);
    Shared shared(run, patience);
    run.control.onEnding([&shared] { shared.cancel(); });
    {
        std::vector<std::jthread> threads;
        threads.reserve(static_cast<std::size_t>(ranks));
        for (int r = 0; r < ranks; ++r) {
            if (!run.control.ending()) start(threads, shared, Rank{r});
            if (threads.size() <= static_cast<std::size_t>(r)) run.control.leave(); // in the place of a thread that is not there
        }
        run.control.superviseRanks();
    }
    run.control.onEnding({});
}

} // namespace stagecraft::runtime
