// SPDX-License-Identifier: Apache-2.0
//
// A thread per rank. Each goes through its list in order: waits for its input, executes, hands its output over; at the end
// of a step come the optimizers of its stages, then all ranks meet.
//
//   rank 0   F0 F1 ....... B0 B1 Opt |          | F0 F1 ...
//   rank 1      F0 B0 F1 B1 Opt .... | barrier  |    F0 B0 ...
//                                      last one in: span, loss, check
#include "engine/runtime/executor_torch.h"

#include "engine/runtime/run_messages.h"
#include "engine/transport/local_handoff.h"
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

using Handoff = LocalHandoff<at::Tensor>;

struct Shared {
    const Execution& run;
    Handoff handoff;
    StepBarrier barrier;
    TimeNs stepBegin = 0;        // written by the last one at the barrier
    std::vector<TimeNs> rankEnd; // of the step; each rank its own
};

class RankWorker {
public:
    RankWorker(Shared& shared, Rank rank)
        : shared_(shared), run_(shared.run), rank_(rank), ring_(run_.recorder.ring(rank)), ledger_(run_.pipeline.ledger(rank))
    {
    }

    void work()
    {
        // The backward stays on this thread: elsewhere its allocations would have no owner.
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
        at::set_num_threads(1);
        for (int step = 0;; ++step) {
            // The last one goes on executing, so that nothing is called paused while it checks the step.
            if (!shared_.barrier.arrive([&] { betweenSteps(step); }, [&] { run_.control.rest(rank_); })) return;
            sampleMemory(run_.clock.now()); // all have let go of the last step
            if (step == run_.plan.run.steps || !executeStep(Step{step})) return;
        }
    }

private:
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
        for (const Action& action : run_.schedule.order[index(rank_)]) {
            if (!executeAction(action.work, step)) return false;
        }
        for (const Stage stage : run_.pipeline.stagesOf(rank_)) {
            if (!executeAction(makeAction(ActionKind::Optimizer, stage).work, step)) return false;
        }
        return true;
    }

    bool executeAction(const Work& work, Step step)
    {
        Arrival<at::Tensor> input{{}, -1};
        if (run_.pipeline.takesInput(work)) {
            const BoxAddress box{work.kind == ActionKind::Forward ? Direction::Forward : Direction::Backward, work.stage,
                                 work.microbatch};
            if (!shared_.handoff.full(box)) run_.control.rest(rank_);
            std::optional<Arrival<at::Tensor>> arrival = shared_.handoff.take(box);
            if (!arrival) return false;
            input = std::move(*arrival);
        }
        if (!run_.control.enter(rank_)) return false;

        ActionTimes times{.begin = run_.clock.now(), .ready = input.available};
        ledger_.watchPeak();
        const BytesByClass before = ledger_.held();
        at::Tensor output;
        try {
            output = run_.pipeline.execute(work, step, std::move(input.payload));
        } catch (...) {
            run_.control.fail(describeFailure(work, step, rank_, std::current_exception()));
            return false;
        }
        times.end = run_.clock.now();
        const BytesByClass after = ledger_.held();
        if (output.defined()) times.available = handOver(work, std::move(output));

        ring_.push(memoryEvent(times.begin, before));
        if (const auto peak = ledger_.peak()) ring_.push(memoryEvent(peak->time, peak->bytes));
        ring_.push(memoryEvent(times.end, after));
        ring_.push(actionEvent(step, work, times));
        shared_.rankEnd[index(rank_)] = times.end;
        return true;
    }

    TimeNs handOver(const Work& work, at::Tensor output)
    {
        const bool forward = work.kind == ActionKind::Forward;
        const Stage receiver{work.stage.value + (forward ? 1 : -1)};
        return shared_.handoff.put({forward ? Direction::Forward : Direction::Backward, receiver, work.microbatch},
                                   std::move(output), run_.clock);
    }

    void sampleMemory(TimeNs time) { ring_.push(memoryEvent(time, ledger_.held())); }

    Shared& shared_;
    const Execution& run_;
    Rank rank_;
    EventRing<RunEvent>& ring_;
    MemoryLedger& ledger_;
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
    Shared shared{run, Handoff(run.schedule.stages(), run.schedule.microbatches, patience), StepBarrier(ranks, patience), 0,
                  std::vector<TimeNs>(static_cast<std::size_t>(ranks))};
    run.control.onEnding([&shared] {
        shared.handoff.cancel();
        shared.barrier.cancel();
    });
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
