// SPDX-License-Identifier: Apache-2.0
//
// What holds the ranks of one run together: the gate between two actions that pause and stop close, the first failure,
// and who is at rest.
//
//            pause()                 every rank rests
//   Running ─────────► gate closed ─────────────────► Paused        resume() opens the gate again
//      │ stop(), fail()
//      └─────────────► ending: the gate lets nobody through, waits are cancelled, ranks drain
//
// A rank is *executing* between enter() and rest(), and at rest otherwise: parked at the gate, waiting for a hand-off or at
// the end of the step. The gate and each rank's status are sequentially consistent, so that of "the rank enters" and "the
// gate closes" one sees the other: once all are seen at rest behind a closed gate, nobody executes until it opens.
//
// Paused time begins when the first rank is turned away at the closed gate, or when all rest, and ends when the gate opens:
//
//   rank 0   F3 |gate
//   rank 1   B0 . . . . |gate            closing: rank 1 ends its action, which rank 0's figures must not pay for
//               [ ------ paused -------- ]
#pragma once

#include "engine/probe/clock.h"
#include "engine/session/session_message.h"
#include "traces/base/ids.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace stagecraft::runtime {

struct RunListener {
    std::function<void(engine::SessionState)> state;  // Running, Paused
    std::function<void(traces::Interval)> paused;     // a pause that is over; before the gate opens
};

class RunControl {
public:
    RunControl(int ranks, const Clock& clock, RunListener listener);

    // From the session. None waits.
    void pause();
    void resume();
    void stop();

    // Ranks.
    bool enter(traces::Rank rank); // before an action: waits while the gate is closed; false: the run ends
    void rest(traces::Rank rank);  // after an action, before whatever the rank waits for
    void leave();                  // a rank is through for good
    // Something that goes on beside the rank's actions, as a copy does: begun while the rank executes, ended by any thread. Until then
    // the rank is not at rest.
    void beginBeside(traces::Rank rank) { status_[traces::index(rank)].beside.fetch_add(1); }
    void endBeside(traces::Rank rank);
    void fail(engine::FailureMessage failure); // the first is kept; the run ends

    [[nodiscard]] bool ending() const { return gate_.load() == kEnding; }
    [[nodiscard]] bool pausing() const { return gate_.load() == kClosed; } // asked for, or paused
    [[nodiscard]] std::optional<engine::FailureMessage> failure() const;

    // Called once, when the run is to end; at once where it already is. Clear it before what it uses goes away: that waits
    // for a call that is under way in another thread.
    void onEnding(std::function<void()> cancelWaits);

    // The controller's thread, while the ranks run in their own: settles pauses until all ranks have left.
    void superviseRanks();
    // The same for a run whose actions the calling thread executes itself: between two actions. False: the run ends.
    // Its clock stands still meanwhile, at `now`, so the pause has a place in it but no length.
    bool passGate(TimeNs now);

private:
    static constexpr std::uint32_t kOpen = 0;
    static constexpr std::uint32_t kClosed = 1;
    static constexpr std::uint32_t kEnding = 2;
    enum class Wish : std::uint8_t { Run, Pause };

    struct alignas(64) Status {
        std::atomic<bool> executing{false};
        std::atomic<int> beside{0};
    };

    void end();
    [[nodiscard]] bool allRest() const;
    void tellController();
    void noteTurnedAway();

    const Clock& clock_;
    RunListener listener_;
    int ranks_;
    std::unique_ptr<Status[]> status_;
    std::atomic<std::uint32_t> gate_{kOpen};

    mutable std::mutex mutex_; // guards what follows
    std::condition_variable changed_;
    Wish wish_ = Wish::Run;
    int left_ = 0;
    std::optional<TimeNs> pauseBegin_;
    std::optional<engine::FailureMessage> failure_;
    std::function<void()> cancelWaits_;
    bool cancelling_ = false; // cancelWaits_ is being called, outside the lock
};

} // namespace stagecraft::runtime
