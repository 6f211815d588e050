// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_worker_torch.h"

#include "engine/probe/operators_torch.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/boundary.h"
#include "engine/runtime/copy_lane_torch.h"
#include "engine/runtime/device_queue_torch.h"
#include "engine/runtime/memory_track.h"
#include "engine/runtime/pair_helper.h"
#include "engine/runtime/rank_exchange_torch.h"
#include "engine/runtime/rank_failures_torch.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/replica_rank_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/unit_streams.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/shard.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

namespace {

// The backward stays on its thread: elsewhere its allocations would have no owner.
void settleThread(const RankDevice& device)
{
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1);
    device.useHere();
}

class RankWorker {
public:
    RankWorker(const Execution& run, const RankLinks& links, Rank rank)
        : run_(run), links_(links), own_(rank), rank_(run.among(rank)),
          list_(rankWork(run.schedule, rank, endsOf(run.plan.model), clippingOf(run.plan.run), run.plan.machine.replicas)),
          ring_(run.recorder.ring(rank_)), device_(run.pipeline.device(rank)),
          ledger_(run.pipeline.ledger(rank)), queue_(device_, ring_, run.plan.run.tracing, run.watch, rank_), failures_(run.control, rank_, queue_),
          memory_(ledger_, ring_)
    {
        const bool pairs = std::any_of(list_.begin(), list_.end(), [](const Action& a) { return a.kind() == ActionKind::Overlap; });
        const bool copies = std::any_of(list_.begin(), list_.end(), [](const Action& a) { return engine::isCopy(a.kind()); });
        if (pairs || copies) run.pipeline.meetFaultOfThread(rank, InjectedFault::Kind::NoSecondThread);
        const auto settle = [device = &device_] { settleThread(*device); };
        if (pairs) helper_.emplace(settle);
        if (device_.isCpu() && run.plan.run.tracing >= TraceLevel::Kernels)
            for (std::optional<OperatorRecording>& each : operators_) each.emplace(run.clock);
        if (device_.hasTwo()) streams_.emplace(list_);
        if (links.sums != nullptr) replica_.emplace(run, *links.sums, rank);
        if (copies) copies_.emplace(run, rank, settle);
        exchange_.emplace(RankExchange::Parts{.run = run, .links = links_, .own = rank, .device = device_, .queue = queue_, .failures = failures_, .memory = memory_,
                                              .replica = replica_ ? &*replica_ : nullptr, .collectives = collectives()});
    }

    // Its parts wait for what they have asked the device for.
    ~RankWorker()
    {
        if (!device_.isCpu()) ending_.emplace(run_.watch, rank_, DeviceWatch::OfOthers{"ending its part of the run"});
    }
    RankWorker(const RankWorker&) = delete;
    RankWorker& operator=(const RankWorker&) = delete;

    void work()
    {
        settleThread(device_);
        {
            const DeviceWatch::Wait wait(device_.isCpu() ? nullptr : run_.watch, rank_, "at its first product");
            device_.warmUp();
        }
        if (replica_) replica_->awaitPrepared();
        for (int step = run_.firstStep; links_.meeting.meet(rank_, step, end_); ++step) {
            if (step > run_.firstStep && links_.handoff.bounded()) collectives().push(waitEvent(Step{step - 1}, WaitCause::Flush, {}, {end_, run_.clock.now()}));
            sampleMemory(run_.clock.now()); // all have let go of the last step
            if (step == run_.plan.run.steps || !beginOnDevice(Step{step}) || !executeStep(Step{step}) || !endOnDevice(Step{step}) || !settleHandOver(Step{step})) return;
        }
    }

private:
    // One of the computing actions, ready to go.
    struct Task {
        Work work;
        Arrival<Boundary> input{{}, -1};
        TimeNs reloaded = -1; // when what was offloaded had come back
        ReplicaRank::Since gathered{}; // when the stage's weights had
        DeviceMark sums{};    // of a GPU, when the gradients are summed that it takes
        at::Tensor output{}; // to be handed over
        ActionTimes times{};
        DeviceTimes onDevice{};
        int beside = 0; // 1: on the second thread
        std::exception_ptr error{};
    };

    // Until the device has done what it was asked for, so that what comes next has times of its own.
    void settleDevice(Step step)
    {
        queue_.drain(step);
        device_.turnTo(0);
        end_ = std::max(end_, queue_.lastEnd());
    }

    bool settleDeviceBefore(const Work& work, Step step)
    {
        return device_.isCpu() || failures_.settled([&] { settleDevice(step); }, "the device's part", step, work);
    }

    bool beginOnDevice(Step step)
    {
        if (device_.isCpu()) return true;
        const DeviceWatch::Wait here(run_.watch, rank_, step);
        return failures_.watched(step, "beginning the device's part", [&] { run_.pipeline.beginStepOnDevice(own_); });
    }

    bool endOnDevice(Step step)
    {
        if (device_.isCpu()) return true;
        if (!failures_.settled([&] { settleDevice(step); }, "the device's part", step)) return false;
        sampleMemory(run_.clock.now());
        const DeviceWatch::Wait here(run_.watch, rank_, step);
        Work work; // whose loss is looked at
        const auto read = [&] {
            run_.pipeline.readLosses(own_, step, work);
            return true;
        };
        return failures_.attempt(work, step, read);
    }

    // Outside of what the device is waited for: it is another rank that may be long in coming.
    bool settleHandOver(Step step)
    {
        return failures_.watched(step, "the hand-over", [&] { links_.handoff.settle(); });
    }

    bool executeStep(Step step)
    {
        if (replica_) replica_->begin(step);
        std::size_t asked = 0; // actions
        const auto execute = [&](const Action& action) {
            if (streams_ && action.microbatch() == kNoMicroBatch && !turnToFirst(action.work, step)) return false;
            if (replica_ && !letGoOfSummed(action.work, step)) return false;
            if (sharesNorm(action)) return ended(exchange_->clipGradients(action.work, step));
            if (action.kind() == ActionKind::AllReduce) return ended(exchange_->sumGradients(action, step));
            if (engine::isCopy(action.kind())) return beginCopy(action.work, step);
            if (engine::isSharding(action.kind())) return shard(action.work, step);
            return executeAction(action, step);
        };
        const auto passed = [&] { return failures_.watched(step, "the hand-over", [&] { links_.handoff.passed(asked++); }); };
        const bool done = passed() && std::all_of(list_.begin(), list_.end(), [&](const Action& action) { return execute(action) && passed(); });
        if (!done || !replica_) return done;
        const std::optional<TimeNs> whole = replica_->allWeights();
        if (whole) end_ = std::max(end_, *whole);
        return whole.has_value() && run_.control.enter(rank_); // the last one at the meeting executes what is between two steps
    }

    bool ended(const std::optional<TimeNs>& end)
    {
        if (end) end_ = *end;
        return end.has_value();
    }

    bool executeAction(const Action& action, Step step)
    {
        std::vector<Task> tasks;
        engine::forEachWork(action, [&](const Work& work) { tasks.push_back({work}); });
        if (links_.waits != nullptr) links_.waits->enter(own_, tasks.front().work);
        for (Task& task : tasks)
            if (!waitForReload(task, step) || !waitForWeights(task) || !waitForInput(task, step) || !waitForSums(task, step)) return false;
        for (Task& task : tasks)
            if (!waitWhileHeld(task.work, step)) return false;
        if (!run_.control.enter(rank_)) return false;

        const TimeNs begin = run_.clock.now();
        ledger_.watchPeak();
        const BytesByClass before = ledger_.held();
        const bool beside = tasks.size() == 2 && device_.isCpu(); // a GPU has two streams for them
        if (beside) tasks.front().beside = 1;
        if (beside) helper_->start([&] { perform(tasks.front(), step); }); // the forward of a pair
        else if (tasks.size() == 2) perform(tasks.front(), step);
        perform(tasks.back(), step);
        if (beside) helper_->wait();
        const BytesByClass after = ledger_.held();
        for (const Task& task : tasks)
            if (streams_) ended_[streams_->of(task.work)] = task.onDevice.end;
        for (Task& task : tasks) {
            if (!task.error && !device_.isCpu()) task.error = overdraft();
            if (!task.error) continue;
            failures_.at(task.work, step, task.error);
            awaitWhatFailed(task.work, step);
            return false;
        }

        TimeNs end = begin;
        for (const Task& task : tasks) end = std::max(end, task.times.end);
        for (int each = 0; operators_[0] && each <= (beside ? 1 : 0); ++each)
            run_.recorder.post(OperatorBatch{.rank = rank_, .step = step, .beside = each, .spans = operators_[static_cast<std::size_t>(each)]->take()});
        memory_.add({begin, before});
        if (const auto peak = ledger_.peak()) memory_.add(*peak);
        memory_.add({end, after});
        run_.pipeline.countActivations(own_, action);
        if (!takeCopies()) return false;
        recordMemory();
        end_ = end;
        std::vector<RunEvent> sends;
        if (links_.handoff.bounded())
            for (Task& task : tasks)
                if (!handOverBounded(task, step, sends)) return false;
        for (const Task& task : tasks) {
            RunEvent event = actionEvent(step, task.work, task.times, tasks.size() == 2 && &task == &tasks.front() ? 1 : 0);
            if (replica_ && replica_->isLast(task.work)) event.value[RunEvent::kLast] = 1;
            if (!record(event, task.onDevice, inUse_.usedUp(task.work, run_.schedule.inference()))) return false;
        }
        for (const RunEvent& send : sends) pushWait(send);
        if (replica_ && action.kind() == ActionKind::Optimizer) replica_->giveWeights(placeOf(action.work));
        return true;
    }

    // On the rank's own thread, as it may have to wait; the wait is a send between its actions.
    bool handOverBounded(Task& task, Step step, std::vector<RunEvent>& sends)
    {
        const std::optional<BoxAddress> box = outputBox(task.work, run_.schedule.stages());
        if (!box) return true;
        const bool waits = !links_.handoff.hasRoom(*box);
        if (waits) {
            if (!settleDeviceBefore(task.work, step)) return false; // the wait comes behind the action
            run_.control.rest(rank_);
            if (links_.waits != nullptr) links_.waits->enter(own_, task.work);
        }
        const TimeNs begin = waits && task.onDevice.end ? std::max(run_.clock.now(), task.onDevice.end->time()) : run_.clock.now();
        task.times.available = links_.handoff.put(*box, Boundary{std::move(task.output), task.onDevice.end}, run_.clock);
        if (!waits) return true;
        task.times.available = std::max(task.times.available, begin);
        task.times.sent = task.times.available;
        Work send = task.work;
        send.kind = task.work.kind == ActionKind::Forward ? ActionKind::SendForward : ActionKind::SendBackward;
        sends.push_back(waitEvent(step, WaitCause::Room, send, {begin, task.times.available}));
        end_ = task.times.available;
        return true;
    }

    bool beginCopy(const Work& work, Step step)
    {
        if (!run_.control.enter(rank_)) return false;
        if (streams_) device_.turnTo(streams_->of(work)); // it was made there
        copies_->ask(work, step, device_.mark());
        return true;
    }

    // UNSHARD, RESHARD and REDUCE_GRAD: what takes its time goes on beside.
    bool shard(const Work& work, Step step)
    {
        if (links_.waits != nullptr) links_.waits->enter(own_, work);
        const Place place = placeOf(work);
        std::optional<ReplicaRank::Since> gathered{ReplicaRank::Since{}};
        if (work.kind == ActionKind::Reshard && replica_) gathered = replica_->weightsOf(place);
        if (!gathered || !run_.control.enter(rank_)) return false;
        const TimeNs begin = run_.clock.now();
        DeviceTimes onDevice;
        const auto execute = [&] {
            const RankDevice::Scope here = device_.enter();
            const WorkScope mark(run_.marks, step, work, run_.replica);
            device_.await(gathered->mark);
            onDevice.begin = device_.mark();
            run_.pipeline.execute(work, step, {});
            onDevice.end = device_.mark();
            if (streams_) ended_[0] = onDevice.end;
            if (!device_.isCpu()) expectRoom(ledger_);
            return true;
        };
        if (!failures_.attempt(work, step, execute)) return false;
        end_ = run_.clock.now();
        sampleMemory(end_);
        const bool beside = replica_ && work.kind != ActionKind::Reshard;
        if (!beside) return record(actionEvent(step, work, {.begin = begin, .end = end_}), onDevice, {});
        if (work.kind == ActionKind::Unshard) replica_->gatherWeights(place);
        else replica_->sumGradients(place);
        return true;
    }

    // At once, or when the device has done it: `held` until then.
    bool record(const RunEvent& event, const DeviceTimes& times, std::vector<c10::Storage> held)
    {
        if (device_.isCpu()) {
            ring_.push(event);
            return true;
        }
        queue_.add(event, times, std::move(held));
        return failures_.settled([&] { queue_.settle(); }, "an action", event.step);
    }

    bool letGoOfSummed(const Work& next, Step step)
    {
        bool any = false;
        if (!failures_.attempt(next, step, [&] {
                any = replica_->letGoOfSummed();
                return true;
            }))
            return false;
        if (any) sampleMemory(run_.clock.now());
        return true;
    }

    bool waitForWeights(Task& task)
    {
        if (!replica_ || !engine::usesWeights(task.work.kind)) return true;
        const std::optional<ReplicaRank::Since> since = replica_->weightsOf(placeOf(task.work));
        if (since) task.gathered = *since;
        return since.has_value();
    }

    bool waitForReload(Task& task, Step step)
    {
        if (!copies_ || (task.work.kind != ActionKind::Backward && task.work.kind != ActionKind::InputGrad)) return true;
        if (copies_->pending(task.work)) {
            run_.control.rest(rank_);
            copies_->await(task.work);
        }
        if (!takeCopies()) return false;
        Work reload = task.work;
        reload.kind = ActionKind::Reload;
        const auto back = reloaded_.find({step, reload});
        if (back == reloaded_.end()) return true;
        task.reloaded = back->second;
        reloaded_.erase(back);
        return true;
    }

    // What is done of the copies beside, onto their lanes.
    bool takeCopies()
    {
        if (!copies_) return true;
        for (const CopyLane::Copy& copy : copies_->takeDone()) {
            if (copy.error) {
                failures_.at(copy.work, copy.step, copy.error);
                return false;
            }
            memory_.add({copy.span.end, copy.after});
            ring_.push(copyEvent(copy.step, copy.work, copy.span));
            if (copy.work.kind != ActionKind::Reload) continue;
            reloaded_[{copy.step, copy.work}] = copy.span.end;
            const RankDevice::Scope here = device_.enter();
            device_.awaitWithBoth(copy.end);
        }
        return true;
    }

    // For what is of no unit: after all that came before it.
    bool turnToFirst(const Work& work, Step step)
    {
        return failures_.attempt(work, step, [&] {
            device_.turnTo(0);
            const RankDevice::Scope here = device_.enter();
            device_.await(ended_[1]);
            return true;
        });
    }

    // What the replica's second thread saw comes with it.
    void recordMemory()
    {
        if (replica_)
            for (const MemorySample& sample : replica_->takeSamples()) memory_.add(sample);
        memory_.record();
    }

    void pushWait(const RunEvent& wait)
    {
        ring_.push(wait);
        queue_.waitedUntil(wait.end);
        end_ = std::max(end_, wait.end);
    }

    bool waitWhileHeld(const Work& work, Step step)
    {
        if (!run_.trouble.holds(work.stage)) return true;
        if (!settleDeviceBefore(work, step)) return false; // the wait comes behind what was asked for
        run_.control.rest(rank_);
        const TimeNs begin = std::max(run_.clock.now(), end_);
        const bool goesOn = run_.trouble.awaitRelease(work.stage);
        pushWait(waitEvent(step, WaitCause::Hold, work, {begin, std::max(begin, run_.clock.now())}));
        return goesOn;
    }

    bool waitForInput(Task& task, Step step)
    {
        const std::optional<BoxAddress> box = inputBox(task.work, run_.schedule.stages());
        if (!box) return true;
        return failures_.attempt(task.work, step, [&] {
            if (!links_.handoff.full(*box)) run_.control.rest(rank_);
            std::optional<Arrival<Boundary>> arrival = links_.handoff.take(*box);
            if (!arrival) return false;
            task.input = std::move(*arrival);
            return true;
        });
    }

    bool waitForSums(Task& task, Step step)
    {
        if (!replica_ || task.work.kind != ActionKind::Optimizer) return true;
        std::optional<ReplicaRank::Since> since;
        const auto wait = [&] { since = replica_->gradientsOf(placeOf(task.work)); };
        if (!failures_.settled(wait, kWaitForSums, step, task.work) || !since) return false;
        task.input.available = since->time;
        task.sums = since->mark;
        return true;
    }

    // On whatever thread; hands over as soon as it is done, where that never waits.
    void perform(Task& task, Step step)
    {
        try {
            if (device_.isCpu()) {
                RankDevice::Fetched input = awaited(task, step);
                task.times = timesFrom(task, input.ready ? input.ready->time() : task.input.available);
                std::optional<OperatorRecording>& operators = operators_[static_cast<std::size_t>(task.beside)];
                const OperatorRecording::Scope recorded(operators ? &*operators : nullptr);
                task.output = run_.pipeline.execute(task.work, step, std::move(input.tensor));
                run_.trouble.linger(task.work.stage, run_.clock.now() - task.times.begin);
            } else {
                performOnDevice(task, step);
            }
            task.times.end = run_.clock.now();
            if (links_.handoff.bounded()) return;
            const std::optional<BoxAddress> box = outputBox(task.work, run_.schedule.stages());
            if (box) task.times.available = links_.handoff.put(*box, Boundary{std::move(task.output), task.onDevice.end}, run_.clock);
        } catch (...) {
            task.error = std::current_exception();
        }
    }

    // On the CPU, from a GPU.
    RankDevice::Fetched awaited(Task& task, Step step)
    {
        const DeviceWatch::Wait here(task.input.payload.ready ? run_.watch : nullptr, rank_, step, task.work);
        return fetch(task);
    }

    // Asks for it; what comes of it is there later.
    // After what came before it; of a pair after what came before the pair, which is what has ended until both are asked for.
    void performOnDevice(Task& task, Step step)
    {
        const std::size_t which = streams_ ? streams_->of(task.work) : 0;
        device_.turnTo(which);
        const RankDevice::Scope here = device_.enter();
        if (streams_) device_.await(ended_[1 - which]);
        {
            const DeviceWatch::Wait wait(run_.watch, rank_, step, task.work);
            const WorkScope mark(run_.marks, step, task.work, run_.replica);
            task.times = timesFrom(task, task.input.available);
            RankDevice::Fetched input = fetch(task);
            inUse_.hold(task.work, input.tensor);
            if (task.reloaded >= 0) inUse_.hold(task.work, run_.pipeline.cameBack(task.work));
            device_.await(task.gathered.mark);
            device_.await(task.sums);
            task.onDevice = {.ready = task.sums ? task.sums : std::move(input.ready), .gathered = task.gathered.mark, .begin = device_.mark(),
                             .source = std::move(input.source)};
            task.output = run_.pipeline.execute(task.work, step, std::move(input.tensor));
            task.onDevice.end = device_.mark();
            if (run_.trouble.factorOf(task.work.stage) <= 1) return;
            task.onDevice.end->wait();
        }
        run_.trouble.linger(task.work.stage, task.onDevice.end->time() - task.onDevice.begin->time());
        task.onDevice.end = device_.mark(); // what is asked for next comes after it
    }

    // What is copied from elsewhere is the rank's: an input until its backward, a gradient while that runs.
    RankDevice::Fetched fetch(Task& task)
    {
        const AllocationScope scope({.ledger = &ledger_, .memory = arrivesAs(task.work.kind)});
        return device_.fetch(std::move(task.input.payload));
    }

    [[nodiscard]] ActionTimes timesFrom(const Task& task, TimeNs ready) const
    {
        return {.begin = run_.clock.now(), .ready = ready, .reloaded = task.reloaded, .gathered = task.gathered.time};
    }

    // It may have asked for something before it threw, such as a copy of what another GPU has given, which lives until then.
    void awaitWhatFailed(const Work& work, Step step)
    {
        if (device_.isCpu()) return;
        const DeviceWatch::Wait here(run_.watch, rank_, step, work);
        try {
            device_.drain();
        } catch (...) { // a device that has failed uses nothing any more
        }
    }

    std::exception_ptr overdraft()
    {
        try {
            expectRoom(ledger_);
            return {};
        } catch (...) {
            return std::current_exception();
        }
    }

    // For what lies on the lane of collectives: where a second thread writes that, it has nothing to write while this one does.
    [[nodiscard]] EventRing<RunEvent>& collectives() { return replica_ ? run_.recorder.collectiveRing(rank_) : ring_; }

    void sampleMemory(TimeNs time)
    {
        memory_.add({time, ledger_.held()});
        recordMemory();
    }

    std::optional<DeviceWatch::Wait> ending_; // first, so over last
    const Execution& run_;
    const RankLinks links_;
    const Rank own_;  // of the replica
    const Rank rank_; // of all
    std::vector<Action> list_; // of a step
    EventRing<RunEvent>& ring_;
    RankDevice& device_;
    MemoryLedger& ledger_;
    InputsInUse inUse_; // of a GPU
    DeviceQueue queue_; // of what it was asked for
    RankFailures failures_;
    MemoryTrack memory_;
    TimeNs end_ = 0; // of the last action
    std::optional<ReplicaRank> replica_;
    std::optional<RankExchange> exchange_;
    std::optional<UnitStreams> streams_; // where the rank has two
    std::array<DeviceMark, 2> ended_;    // on each: the last action
    std::map<std::pair<Step, Work>, TimeNs> reloaded_; // whose action has not come yet
    std::array<std::optional<OperatorRecording>, 2> operators_; // of this thread, and of the helper's; none where they are not recorded
    std::optional<PairHelper> helper_;
    std::optional<CopyLane> copies_;
};

} // namespace

void runRank(const Execution& run, const RankLinks& links, Rank rank)
{
    try {
        RankWorker(run, links, rank).work();
    } catch (const std::system_error& error) { // of a thread beside it
        run.control.fail(threadFailure("rank " + std::to_string(run.among(rank).value) + ", a second one beside it,", error.code().message()));
    } catch (...) {
        run.control.fail(describeFailure("the work between two steps", std::current_exception()));
    }
    run.control.rest(run.among(rank));
    run.control.leave();
}

} // namespace stagecraft::runtime
