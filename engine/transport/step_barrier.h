// SPDX-License-Identifier: Apache-2.0
//
// Where all ranks meet at the end of a step. The one that comes last does what belongs to the whole step (its span, its
// check), then all go on together.
//
//   if (!barrier.arrive([&] { endOfStep(); }, [&] { restUntilTheOthersCome(); })) return; // cancelled
#pragma once

#include "engine/transport/spin_wait.h"

#include <atomic>

namespace stagecraft::runtime {

class StepBarrier {
public:
    StepBarrier(int ranks, const Patience& patience) : ranks_(static_cast<std::uint32_t>(ranks)), patience_(patience) {}

    // The last one calls `completion`, each other one `waiting` before it waits.
    template <class Completion, class Waiting>
    bool arrive(Completion&& completion, Waiting&& waiting)
    {
        const std::uint32_t round = round_.load(std::memory_order_acquire);
        if (cancelled_.load(std::memory_order_acquire)) return false;
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
            completion();
            arrived_.store(0, std::memory_order_relaxed);
            round_.fetch_add(1, std::memory_order_release);
            round_.notify_all();
        } else {
            waiting();
            waitWhile(round_, round, patience_);
        }
        return !cancelled_.load(std::memory_order_acquire);
    }

    // Wakes all who wait; every later arrival returns false at once.
    void cancel()
    {
        cancelled_.store(true, std::memory_order_release);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
    }

private:
    std::uint32_t ranks_;
    Patience patience_;
    alignas(64) std::atomic<std::uint32_t> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> round_{0};
    std::atomic<bool> cancelled_{false};
};

} // namespace stagecraft::runtime
