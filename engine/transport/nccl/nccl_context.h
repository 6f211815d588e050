// SPDX-License-Identifier: Apache-2.0
//
// What the communicators of a clique share: NCCL, the clock that bounds every wait, and the first fault, which ends all of them.
//
//   NcclContext context(NcclGround{.api = library.api, .clock = monotonicClock()});
//   const int generation = context.fault.begin();          // of communicators
//   context.fault.keep(generation, rank, "...");           // any thread; the first is kept
#pragma once

#include "engine/probe/clock.h"
#include "engine/transport/nccl/nccl_api.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace stagecraft::runtime {

// How long something may take before it counts as a hang.
struct NcclPatience {
    TimeNs connect = 120'000'000'000;  // until all ranks have come to each other
    TimeNs call = 60'000'000'000;      // until NCCL has put a call on its stream; the first between two ranks waits for the other
    TimeNs transfer = 300'000'000'000; // until the next of what is on a stream is done: longer than any step
    TimeNs ending = 5'000'000'000;     // until a call that hangs is ended from outside
};

struct NcclFault {
    int rank = -1; // as what its member is known (clique.h); -1: it came from outside
    std::string text;
};

class FirstFault {
public:
    // Forgets the last one; what is told of an earlier generation from now on is none.
    int begin()
    {
        const std::lock_guard lock(mutex_);
        fault_.reset();
        any_.store(false);
        return ++generation_;
    }
    // The text of the first, which may be another's.
    std::string keep(int generation, int rank, std::string text)
    {
        const std::lock_guard lock(mutex_);
        if (generation != generation_) return text;
        if (!fault_) fault_ = NcclFault{rank, std::move(text)};
        any_.store(true);
        return fault_->text;
    }
    [[nodiscard]] bool any() const { return any_.load(); }
    [[nodiscard]] std::optional<NcclFault> first() const
    {
        const std::lock_guard lock(mutex_);
        return fault_;
    }
    [[nodiscard]] int generation() const
    {
        const std::lock_guard lock(mutex_);
        return generation_;
    }

private:
    mutable std::mutex mutex_; // guards all but any_
    std::optional<NcclFault> fault_;
    int generation_ = 0;
    std::atomic<bool> any_{false};
};

// What a clique stands on.
struct NcclGround {
    NcclApi api;
    const Clock& clock;
    NcclPatience patience = {};
    // Between two looks at something under way; `round` counts them. NCCL takes most calls in microseconds.
    std::function<void(int round)> pause = [](int round) {
        if (round < 2000) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
};

struct NcclContext : NcclGround {
    explicit NcclContext(const NcclGround& ground) : NcclGround(ground) {}
    FirstFault fault;
};

} // namespace stagecraft::runtime
