// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/copy_lane_torch.h"

#include <utility>

namespace stagecraft::runtime {

using namespace traces;

CopyLane::CopyLane(const Execution& run, Rank rank, std::function<void()> prepare)
    : run_(run), rank_(rank), thread_([this, prepare = std::move(prepare)](const std::stop_token& stop) {
          prepare();
          serve(stop);
      })
{
}

CopyLane::~CopyLane()
{
    thread_.request_stop();
    thread_.join();
    try {
        run_.pipeline.copyDevice(rank_).drain(); // of a copy that has failed half-way
    } catch (...) {                              // a device that has failed uses nothing any more
    }
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < asked_.size(); ++i) run_.control.endBeside(run_.among(rank_)); // never begun
}

// The rank executes when it asks, so a run is not called paused before the copy is over.
void CopyLane::ask(const Work& work, Step step, DeviceMark made)
{
    run_.control.beginBeside(run_.among(rank_));
    {
        const std::lock_guard lock(mutex_);
        if (work.kind == ActionKind::Reload) coming_.insert(unitOf(work));
        asked_.push_back({.work = work, .step = step, .made = std::move(made)});
    }
    changed_.notify_all();
}

bool CopyLane::pending(const Work& work)
{
    const std::lock_guard lock(mutex_);
    return coming_.contains(unitOf(work));
}

void CopyLane::await(const Work& work)
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !coming_.contains(unitOf(work)); });
}

std::vector<CopyLane::Copy> CopyLane::takeDone()
{
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
}

void CopyLane::serve(const std::stop_token& stop)
{
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !asked_.empty(); })) {
        Copy copy = asked_.front();
        lock.unlock();
        make(copy);
        lock.lock();
        asked_.pop_front();
        if (copy.work.kind == ActionKind::Reload) coming_.erase(unitOf(copy.work)); // not at the end of the OFFLOAD before it
        done_.push_back(std::move(copy));
        changed_.notify_all();
        run_.control.endBeside(run_.among(rank_));
        if (stop.stop_requested()) return;
    }
}

void CopyLane::make(Copy& copy)
{
    copy.span.begin = run_.clock.now();
    try {
        if (copy.made) makeOnDevice(copy);
        else run_.pipeline.copy(copy.work);
        run_.pipeline.letGo(copy.work);
    } catch (...) {
        copy.error = std::current_exception();
    }
    copy.after = run_.pipeline.ledger(rank_).held();
    if (!copy.made || run_.plan.run.tracing < TraceLevel::Events) copy.span.end = run_.clock.now();
}

void CopyLane::makeOnDevice(Copy& copy)
{
    RankDevice& device = run_.pipeline.copyDevice(rank_);
    const RankDevice::Scope here = device.enter();
    const DeviceWatch::Wait wait(run_.watch, run_.among(rank_), copy.step, copy.work, DeviceWatch::Thread::Copies);
    const WorkScope mark(run_.marks, copy.step, copy.work, run_.replica);
    device.await(copy.made);
    const DeviceMark begin = device.mark();
    run_.pipeline.copy(copy.work);
    copy.end = device.mark();
    copy.end->wait();
    if (run_.plan.run.tracing >= TraceLevel::Events) copy.span = {begin->time(), copy.end->time()};
    if (copy.work.kind == ActionKind::Reload) expectRoom(run_.pipeline.ledger(rank_));
}

} // namespace stagecraft::runtime
