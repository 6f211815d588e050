// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run.h"

#include "engine/probe/block_cache.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/executor_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/run_result.h"

#include <ATen/Parallel.h>

namespace stagecraft::runtime {

using namespace engine;
using namespace traces;

Run::Run(RunnablePlan runnable, const LocalSessionOptions& options, RecordInbox& inbox, std::atomic<SessionState>& state)
    : runnable_(std::move(runnable)), options_(options), clock_(options.clock ? *options.clock : monotonicClock()),
      state_(state), inbox_(inbox), recorder_(runnable_.schedule, options.ringCapacity, inbox),
      control_(runnable_.schedule.ranks, clock_,
               {.state = [this](SessionState s) { enterState(s); },
                .paused = [this](Interval pause) { recorder_.post(PauseRecord{pause}); }})
{
    enterState(SessionState::Preparing);
    recorder_.start(openingInfo(runnable_));
    for (const std::string& note : runnable_.notes) recorder_.post(NoteRecord{note});
    controller_ = std::jthread([this] { execute(); });
}

Run::~Run()
{
    control_.stop();
    if (controller_.joinable()) controller_.join();
}

void Run::stop()
{
    {
        const std::lock_guard lock(stateMutex_);
        if (over_) return;
        if (state_.exchange(SessionState::Stopping) != SessionState::Stopping) say(StateMessage{SessionState::Stopping});
    }
    control_.stop();
}

void Run::enterState(SessionState state)
{
    const std::lock_guard lock(stateMutex_);
    if (over_ || state_.load() == SessionState::Stopping) return;
    state_.store(state);
    say(StateMessage{state});
}

void Run::say(const SessionMessage& message) { recorder_.post(SessionRecord{writeMessage(message)}); }

void Run::execute()
{
    try {
        trainSteps();
    } catch (const PreparationStopped&) { // the control knows
    } catch (...) {
        control_.fail(describeFailure(phase_, std::current_exception()));
    }
    BlockCache::trim(); // an idle session holds no memory
    {
        const std::lock_guard lock(stateMutex_);
        over_ = true;
    }
    recorder_.finish();

    std::vector<Record> closing;
    const auto add = [&](const SessionMessage& message) { closing.push_back(SessionRecord{writeMessage(message)}); };
    const std::optional<FailureMessage> failure = control_.failure();
    if (!failure || check_ == GradientCheck::Failed) {
        const Expected<RunResult> result = summarizeRun({.plan = runnable_.plan,
                                                         .schedule = runnable_.schedule,
                                                         .partition = runnable_.partition,
                                                         .totals = recorder_.totals(),
                                                         .outputs = outputs_,
                                                         .check = check_,
                                                         .maxAbsDiff = maxAbsDiff_});
        if (result.ok()) add(ResultMessage{result.value()});
    }
    SessionState last = SessionState::Finished;
    if (failure) {
        add(*failure);
        last = SessionState::Failed;
    } else if (control_.ending()) {
        last = SessionState::Stopped;
    }
    add(StateMessage{last});
    inbox_.push(std::move(closing));
    state_.store(last); // after the records: who sees it can take them all
}

void Run::trainSteps()
{
    installTaggingAllocator();
    at::set_num_threads(1);
    const RunnablePlan& r = runnable_;
    const Preparation preparation(control_, [this](const PreparationPiece& piece) { say(preparationProgress(piece)); });
    Pipeline pipeline({r.plan, r.schedule, r.partition, clock_, options_.fault}, preparation);
    if (r.resume) {
        phase_ = "going on from the checkpoint";
        restore(*r.resume, pipeline);
    }
    GradientChecker checker(r.plan, r.schedule, r.partition, r.resume.get());
    StepKeeper keeper(r.plan, pipeline, checker, recorder_, control_);
    keeper.prepare(Step{r.firstStep()}, preparation);
    if (control_.ending()) return;

    enterState(SessionState::Running);
    phase_ = "running the steps";
    const Execution execution{r.plan, r.schedule, pipeline, recorder_, control_, keeper, clock_,
                              options_.cpuClock ? *options_.cpuClock : threadCpuClock(), r.costs, r.firstStep()};
    if (r.plan.run.mode == RunMode::Emulated) {
        runEmulated(execution);
    } else {
        runOnThreads(execution);
    }
    if (keeper.completed() > 0) outputs_ = {pipeline.outputShape()};
    check_ = checker.outcome().result;
    maxAbsDiff_ = checker.outcome().maxAbsDiff;
}

} // namespace stagecraft::runtime
