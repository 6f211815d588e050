// SPDX-License-Identifier: Apache-2.0
//
// A thread per rank.
//
//   rank 0   F0 F1 ....... B0 B1 Opt |          | F0 F1 ...
//   rank 1      F0 B0 F1 B1 Opt .... | barrier  |    F0 B0 ...
//                                      last one in: span, loss, check
#include "engine/runtime/rank_worker_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/transport/local_handoff.h"
#include "engine/transport/step_barrier.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

namespace stagecraft::runtime {

using namespace traces;

namespace {

class ThreadMeeting final : public StepMeeting {
public:
    ThreadMeeting(const Execution& run, const Patience& patience)
        : run_(run), barrier_(run.schedule.ranks, patience), rankEnd_(static_cast<std::size_t>(run.schedule.ranks))
    {
    }

    // The last one goes on executing, so that nothing is called paused while it checks the step.
    bool meet(Rank rank, int step, TimeNs end) override
    {
        rankEnd_[index(rank)] = end;
        return barrier_.arrive([&] { betweenSteps(rank, step); }, [&] { run_.control.rest(rank); });
    }
    void cancel() override { barrier_.cancel(); }

private:
    void betweenSteps(Rank last, int step)
    {
        if (step > run_.firstStep) run_.keeper.finish(Step{step - 1}, {stepBegin_, *std::max_element(rankEnd_.begin(), rankEnd_.end())});
        if (step == run_.plan.run.steps) return;
        if (step > run_.firstStep) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
        if (run_.control.enter(last)) stepBegin_ = run_.clock.now(); // a pause here is before the step
    }

    const Execution& run_;
    StepBarrier barrier_;
    TimeNs stepBegin_ = 0;        // written by the last one at the barrier
    std::vector<TimeNs> rankEnd_; // of the step; each rank its own
};

struct Shared {
    Shared(const Execution& execution, const Patience& patience)
        : run(execution), handoff(run.schedule.stages(), mostUnits(run.schedule), patience, static_cast<int>(run.schedule.flows().size())),
          gradients(run.schedule.stages(), 1, patience, static_cast<int>(run.schedule.flows().size())),
          norms(run.schedule.ranks, 1, patience), meeting(run, patience)
    {
    }
    void cancel()
    {
        handoff.cancel();
        gradients.cancel();
        norms.cancel();
        meeting.cancel();
    }

    const Execution& run;
    LocalHandoff<at::Tensor> handoff;
    LocalHandoff<std::vector<at::Tensor>> gradients;
    LocalHandoff<at::Tensor> norms;
    ThreadMeeting meeting;
};

// A thread that cannot be started fails the run: those that were wait for it.
void start(std::vector<std::jthread>& threads, Shared& shared, Rank rank)
{
    const Execution& run = shared.run;
    const std::string name = "rank " + std::to_string(rank.value);
    try {
        run.pipeline.meetFaultOfThread(rank);
        threads.emplace_back([&shared, &run, rank] { runRank(run, {shared.handoff, shared.gradients, shared.norms, shared.meeting}, rank); });
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
