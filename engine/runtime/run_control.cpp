// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_control.h"

#include <utility>

namespace stagecraft::runtime {

using engine::SessionState;

RunControl::RunControl(int ranks, const Clock& clock, RunListener listener)
    : clock_(clock), listener_(std::move(listener)), ranks_(ranks), status_(new Status[static_cast<std::size_t>(ranks)])
{
}

void RunControl::pause()
{
    {
        const std::lock_guard lock(mutex_);
        wish_ = Wish::Pause;
        std::uint32_t open = kOpen;
        gate_.compare_exchange_strong(open, kClosed);
    }
    changed_.notify_all();
}

// Only the controller opens the gate: it first notes when the pause ended.
void RunControl::resume()
{
    {
        const std::lock_guard lock(mutex_);
        wish_ = Wish::Run;
    }
    changed_.notify_all();
}

void RunControl::stop() { end(); }

void RunControl::end()
{
    std::function<void()> cancel;
    {
        const std::lock_guard lock(mutex_);
        gate_.store(kEnding);
        cancel.swap(cancelWaits_);
        if (cancel) cancelling_ = true;
    }
    gate_.notify_all();
    changed_.notify_all();
    if (!cancel) return;
    cancel();
    {
        const std::lock_guard lock(mutex_);
        cancelling_ = false;
    }
    changed_.notify_all();
}

void RunControl::onEnding(std::function<void()> cancelWaits)
{
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !cancelling_; }); // the ranks may be through before the cancelling is
        if (gate_.load() != kEnding || !cancelWaits) {
            cancelWaits_ = std::move(cancelWaits);
            return;
        }
    }
    cancelWaits();
}

void RunControl::fail(engine::FailureMessage failure)
{
    {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::move(failure);
    }
    end();
}

std::optional<engine::FailureMessage> RunControl::failure() const
{
    const std::lock_guard lock(mutex_);
    return failure_;
}

bool RunControl::enter(traces::Rank rank)
{
    std::atomic<bool>& executing = status_[traces::index(rank)].executing;
    for (;;) {
        executing.store(true);
        const std::uint32_t gate = gate_.load();
        if (gate == kOpen) return true;
        executing.store(false);
        if (gate == kClosed) noteTurnedAway();
        tellController();
        if (gate == kEnding) return false;
        gate_.wait(kClosed);
    }
}

void RunControl::rest(traces::Rank rank)
{
    status_[traces::index(rank)].executing.store(false);
    if (gate_.load() != kOpen) tellController();
}

void RunControl::endBeside(traces::Rank rank)
{
    status_[traces::index(rank)].beside.fetch_sub(1);
    if (gate_.load() != kOpen) tellController();
}

void RunControl::leave()
{
    {
        const std::lock_guard lock(mutex_);
        ++left_;
    }
    changed_.notify_all();
}

// The empty critical section orders the change of a status before the controller's next look at it.
void RunControl::tellController()
{
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
}

void RunControl::noteTurnedAway()
{
    const std::lock_guard lock(mutex_);
    if (gate_.load() == kClosed && !pauseBegin_) pauseBegin_ = clock_.now();
}

bool RunControl::allRest() const
{
    for (int r = 0; r < ranks_; ++r) {
        const Status& status = status_[static_cast<std::size_t>(r)];
        if (status.executing.load() || status.beside.load() > 0) return false;
    }
    return true;
}

void RunControl::superviseRanks()
{
    bool announced = false; // that all are paused
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] {
            const bool closed = gate_.load() == kClosed;
            return left_ == ranks_ || (closed && wish_ == Wish::Run) || (closed && !announced && allRest()) ||
                   (pauseBegin_ && !closed);
        });
        const bool over = left_ == ranks_;
        const bool closed = gate_.load() == kClosed;
        if (pauseBegin_ && (over || !closed || wish_ == Wish::Run)) { // resumed, or stopped while paused
            const traces::Interval pause{*pauseBegin_, clock_.now()};
            const bool resumed = std::exchange(announced, false) && closed && !over;
            lock.unlock();
            listener_.paused(pause);
            if (resumed) listener_.state(SessionState::Running);
            lock.lock();
            pauseBegin_.reset(); // not before: whoever is turned away in between belongs to this pause
        }
        if (over) return;
        if (wish_ == Wish::Run) {
            std::uint32_t expected = kClosed;
            gate_.compare_exchange_strong(expected, kOpen);
            gate_.notify_all();
        } else if (gate_.load() == kClosed && !announced && allRest()) {
            if (!pauseBegin_) pauseBegin_ = clock_.now();
            announced = true;
            lock.unlock();
            listener_.state(SessionState::Paused);
            lock.lock();
        }
    }
}

bool RunControl::passGate(TimeNs now)
{
    if (gate_.load() == kOpen) return true;
    std::unique_lock lock(mutex_);
    bool announced = false;
    while (gate_.load() == kClosed && wish_ == Wish::Pause) {
        if (!announced) {
            announced = true;
            lock.unlock();
            listener_.state(SessionState::Paused);
            lock.lock();
            continue;
        }
        changed_.wait(lock);
    }
    if (announced) {
        lock.unlock();
        listener_.paused({now, now});
        lock.lock();
    }
    if (gate_.load() == kEnding) return false;
    std::uint32_t closed = kClosed;
    gate_.compare_exchange_strong(closed, kOpen);
    lock.unlock();
    if (announced) listener_.state(SessionState::Running);
    return !ending();
}

} // namespace stagecraft::runtime
