// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/trouble.h"

#include <cmath>
#include <thread>

namespace stagecraft::runtime {

Trouble::Trouble(int stages, const std::vector<double>& slowdown)
    : count_(static_cast<std::size_t>(stages)), stages_(new StageState[count_])
{
    for (std::size_t s = 0; s < slowdown.size() && s < count_; ++s) stages_[s].factor = slowdown[s];
}

void Trouble::set(const engine::StageTrouble& trouble)
{
    if (trouble.stage < 0 || static_cast<std::size_t>(trouble.stage) >= count_) return;
    StageState& stage = stages_[static_cast<std::size_t>(trouble.stage)];
    {
        const std::lock_guard lock(mutex_);
        if (trouble.factor) stage.factor.store(*trouble.factor, std::memory_order_relaxed);
        if (trouble.held) stage.held.store(*trouble.held, std::memory_order_release);
    }
    changed_.notify_all();
}

void Trouble::cancel()
{
    {
        const std::lock_guard lock(mutex_);
        cancelled_ = true;
    }
    changed_.notify_all();
}

bool Trouble::awaitRelease(traces::Stage stage)
{
    if (!holds(stage)) return true;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ || !holds(stage); });
    return !cancelled_;
}

void Trouble::linger(traces::Stage stage, TimeNs worked)
{
    const double factor = factorOf(stage);
    if (factor <= 1) return;
    using SteadyClock = std::chrono::steady_clock;
    const auto until = SteadyClock::now() + std::chrono::nanoseconds(std::llround((factor - 1) * static_cast<double>(worked)));
    // A sleeper wakes some 60 us late here, and the core is free for others until then: the last of it is waited for awake.
    constexpr std::chrono::microseconds kAwake{100};
    {
        std::unique_lock lock(mutex_);
        if (changed_.wait_until(lock, until - kAwake, [this] { return cancelled_; })) return;
    }
    while (SteadyClock::now() < until) std::this_thread::yield();
}

void Trouble::awaitChange(std::chrono::milliseconds most)
{
    std::unique_lock lock(mutex_);
    if (!cancelled_) changed_.wait_for(lock, most);
}

} // namespace stagecraft::runtime
