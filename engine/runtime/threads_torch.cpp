// SPDX-License-Identifier: Apache-2.0
//
// A thread per rank, and where there are replicas a second one for each that sums gradients and gathers weights (replica_threads.h).
//
//   rank 0   F0 F1 ....... B0 B1 Opt |          | F0 F1 ...
//   rank 1      F0 B0 F1 B1 Opt .... | barrier  |    F0 B0 ...
//                                      last one in: span, loss, check
#include "engine/runtime/rank_worker_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/transport/queue_handoff.h"
#include "engine/transport/step_barrier.h"
#include "engine/transport/wait_edges.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
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
    ThreadMeeting(const Execution& run, int ranks, const Patience& patience)
        : run_(run), barrier_(ranks, patience), rankEnd_(static_cast<std::size_t>(ranks))
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

// The hand-offs of one replica, and who of it waits for whom.
struct Channels {
    Channels(const Execution& execution, const Patience& patience)
        : run(execution), waits(run.schedule.ranks, [this](const std::string& circle) { run.control.fail(deadlockFailure(circle, run.plan.run)); }),
          handoff(makeHandoff(patience)), gradients(run.schedule.stages(), 1, patience, static_cast<int>(run.schedule.flows().size())),
          norms(run.schedule.ranks, 1, patience)
    {
        gradients.watch(&waits, [this](const BoxAddress& box) { return copyEdge(run.schedule, box); });
    }
    std::unique_ptr<Handoff<Boundary>> makeHandoff(const Patience& patience)
    {
        const engine::RunSpec& spec = run.plan.run;
        if (spec.handoff != engine::HandoffKind::Boxes)
            return std::make_unique<QueueHandoff<Boundary>>(
                run.schedule, QueueOptions{.kind = spec.handoff, .depth = spec.handoffDepth, .patience = patience, .graph = &waits});
        auto boxes = std::make_unique<LocalHandoff<Boundary>>(run.schedule.stages(), mostUnits(run.schedule), patience,
                                                                static_cast<int>(run.schedule.flows().size()));
        boxes->watch(&waits, [this](const BoxAddress& box) { return inputEdge(run.schedule, box); });
        return boxes;
    }
    void cancel()
    {
        handoff->cancel();
        gradients.cancel();
        norms.cancel();
    }

    const Execution& run;
    WaitGraph waits;
    std::unique_ptr<Handoff<Boundary>> handoff;
    LocalHandoff<std::vector<at::Tensor>> gradients;
    LocalHandoff<at::Tensor> norms;
};

class Threads {
public:
    explicit Threads(const std::vector<Execution>& replicas)
        : replicas_(replicas), run_(replicas.front()), ranks_(static_cast<int>(replicas.size()) * run_.schedule.ranks), working_(ranks_),
          meeting_(run_, ranks_, patienceFor(ranks_)), onDevices_(deviceCollectives(replicas))
    {
        for (const Execution& replica : replicas) channels_.push_back(std::make_unique<Channels>(replica, patienceFor(ranks_)));
        if (run_.sums == nullptr) return;
        sums_.emplace(ranks_, run_.clock, onDevices_ ? *onDevices_ : onCpu_, sumHooks());
        maker_.emplace(*sums_, onDevices_.get());
    }

    void run()
    {
        run_.control.onEnding([this] { cancel(); });
        {
            std::vector<std::jthread> threads;
            threads.reserve(static_cast<std::size_t>(ranks_));
            for (int r = 0; r < ranks_; ++r) {
                if (sums_ && !startOne("the sums of rank ", r, [&] { sums_->start(Rank{r}); })) run_.control.leave();
                if (!startOne("rank ", r, [&] { startRank(threads, r); })) hasLeft(); // in the place of a thread that is not there
            }
            run_.control.superviseRanks();
        }
        run_.control.onEnding({});
        if (!onDevices_ || run_.control.ending()) return;
        if (const traces::Expected<void> finished = onDevices_->finish(); !finished.ok() && !run_.control.ending())
            run_.recorder.post(NoteRecord{"after the last step: " + finished.error().message});
    }

private:
    void startRank(std::vector<std::jthread>& threads, int r)
    {
        const Execution& run = replicas_[static_cast<std::size_t>(r / run_.schedule.ranks)];
        const Rank rank{r % run_.schedule.ranks};
        run.pipeline.meetFaultOfThread(rank);
        threads.emplace_back([this, &run, rank] {
            Channels& own = *channels_[static_cast<std::size_t>(run.replica)];
            runRank(run, {*own.handoff, own.gradients, own.norms, meeting_, maker_ ? &*maker_ : nullptr, &own.waits}, rank);
            lastEndsSums();
        });
        pthread_setname_np(threads.back().native_handle(), ("rank " + std::to_string(r)).c_str());
    }

    // A thread that cannot be started fails the run: those that were wait for it. False where there is none.
    template <class Start>
    bool startOne(const std::string& whom, int rank, Start&& start)
    {
        if (run_.control.ending()) return false;
        try {
            start();
            return true;
        } catch (const std::system_error& error) {
            run_.control.fail(threadFailure(whom + std::to_string(rank), error.code().message()));
        } catch (...) {
            run_.control.fail(describeFailure("starting the threads of the ranks", std::current_exception()));
        }
        return false;
    }

    void hasLeft()
    {
        run_.control.leave();
        lastEndsSums();
    }
    void lastEndsSums()
    {
        if (working_.fetch_sub(1) == 1 && sums_) sums_->cancel();
    }

    // To the control a second thread is one more rank.
    ReplicaThreads::Hooks sumHooks()
    {
        const auto second = [this](Rank rank) { return Rank{ranks_ + rank.value}; };
        return {.enter = [this, second](Rank rank) { return run_.control.enter(second(rank)); },
                .rest = [this, second](Rank rank) { run_.control.rest(second(rank)); },
                .done =
                    [this](const Collective& collective, std::size_t member, const CollectiveSpan& span) {
                        run_.recorder.collectiveRing(collective.members()[member].rank).push(collectiveEvent(*run_.sums, collective, member, span));
                    },
                .whole = [this](const Collective& collective) { keepOwnGradients(collective); },
                .leave =
                    [this, second](Rank rank) {
                        run_.control.rest(second(rank));
                        run_.control.leave();
                    },
                .failed = [this](Rank rank, Step step, const Work& work,
                                 const std::exception_ptr& error) { run_.control.fail(describeFailure(work, step, rank, error)); }};
    }

    // The last one to sum lets go for all: until here others may have read. Of GPUs the ranks do (replica_rank_torch.h).
    void keepOwnGradients(const Collective& collective)
    {
        if (!run_.sums->isLastSum(collective) || collective.kind().result == Collective::Result::All) return;
        for (std::size_t m = 0; m < collective.members().size(); ++m) {
            const Collective::Member& member = collective.members()[m];
            Pipeline& pipeline = replicas_[static_cast<std::size_t>(member.replica)].pipeline;
            if (!pipeline.deviceOf(member.place).isCpu()) continue;
            try {
                pipeline.stage(member.place).keepOwnGradients();
            } catch (...) {
                run_.control.fail(describeFailure(toText(Action{collective.action(m), {}}), std::current_exception()));
            }
            sums_->note(member.rank, {run_.clock.now(), pipeline.ledger(run_.schedule.rankOf(member.place.flow, member.place.stage)).held()});
        }
    }

    void cancel()
    {
        for (const auto& channels : channels_) channels->cancel();
        meeting_.cancel();
        if (sums_) sums_->cancel();
        run_.trouble.cancel();
    }

    const std::vector<Execution>& replicas_;
    const Execution& run_; // the first: what they share
    const int ranks_;      // of all replicas
    std::atomic<int> working_;
    ThreadMeeting meeting_;
    std::vector<std::unique_ptr<Channels>> channels_; // by replica
    CollectiveWork onCpu_;
    std::unique_ptr<DeviceCollectives> onDevices_; // where some rank is on a GPU
    std::optional<ReplicaThreads> sums_;
    std::optional<SharedSums> maker_; // by those
};

} // namespace

void runOnThreads(const std::vector<Execution>& replicas) { Threads(replicas).run(); }

} // namespace stagecraft::runtime
