// SPDX-License-Identifier: Apache-2.0
//
// Trouble on purpose, while a run goes on: stages whose actions take so many times as long, and stages that stand still. The session sets
// it at any time, ranks look at it around each action.
//
//   trouble.set({.stage = 1, .factor = 2.5});               // from the session
//   if (!trouble.awaitRelease(Stage{1})) return;            // a rank, before an action of the stage; false: the run ends
//   const TimeNs begin = clock.now();
//   execute();
//   trouble.linger(Stage{1}, clock.now() - begin);          // 1.5 times as long again, doing nothing
//
// Private to the runtime.
#pragma once

#include "engine/probe/clock.h"
#include "engine/session/session.h"
#include "traces/base/ids.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace stagecraft::runtime {

class Trouble {
public:
    // `slowdown`: a factor for each stage; empty: 1 each.
    Trouble(int stages, const std::vector<double>& slowdown);

    // Any thread.
    void set(const engine::StageTrouble& trouble); // of a stage that there is not: nothing
    void cancel();                                 // no wait lasts from then on

    [[nodiscard]] double factorOf(traces::Stage stage) const { return stages_[traces::index(stage)].factor.load(std::memory_order_relaxed); }
    [[nodiscard]] bool holds(traces::Stage stage) const { return stages_[traces::index(stage)].held.load(std::memory_order_acquire); }
    bool awaitRelease(traces::Stage stage);
    void linger(traces::Stage stage, TimeNs worked);
    // Until something was set, or so long.
    void awaitChange(std::chrono::milliseconds most);

private:
    struct StageState {
        std::atomic<double> factor{1};
        std::atomic<bool> held{false};
    };

    std::size_t count_;
    std::unique_ptr<StageState[]> stages_;
    std::mutex mutex_; // orders changes before looks of those who wait
    std::condition_variable changed_;
    bool cancelled_ = false; // guarded by it
};

} // namespace stagecraft::runtime
