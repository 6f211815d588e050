// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_control.h"

#include "tests/runtime/manual_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace stagecraft::runtime {
namespace {

using engine::SessionState;
using traces::Rank;

// What the control told, to be waited for.
class Ear {
public:
    RunListener listener()
    {
        return {.state = [this](SessionState state) { note([&] { states.push_back(state); }); },
                .paused = [this](traces::Interval pause) { note([&] { pauses.push_back(pause); }); }};
    }
    void waitForStates(std::size_t count)
    {
        std::unique_lock lock(mutex);
        heard.wait(lock, [&] { return states.size() >= count; });
    }

    std::mutex mutex;
    std::condition_variable heard;
    std::vector<SessionState> states;
    std::vector<traces::Interval> pauses;

private:
    template <class Change>
    void note(Change&& change)
    {
        {
            const std::lock_guard lock(mutex);
            change();
        }
        heard.notify_all();
    }
};

TEST(RunControl, PausesOnceEveryRankRestsAndMeasuresHowLong)
{
    ManualClock clock;
    Ear ear;
    RunControl control(2, clock, ear.listener());
    std::atomic<int> actions{0};
    std::atomic<bool> enough{false};
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 2; ++r) {
        ranks.emplace_back([&, r] {
            while (!enough && control.enter(Rank{r})) {
                ++actions;
                control.rest(Rank{r});
            }
            control.leave();
        });
    }
    std::jthread controller([&] { control.superviseRanks(); });

    control.pause();
    ear.waitForStates(1);
    const int before = actions;
    clock.advance(1'000'000);
    EXPECT_EQ(actions, before); // nobody acts while the gate is closed
    control.resume();
    ear.waitForStates(2);
    enough = true;
    for (std::jthread& rank : ranks) rank.join();
    controller.join();

    EXPECT_EQ(ear.states, (std::vector{SessionState::Paused, SessionState::Running}));
    ASSERT_EQ(ear.pauses.size(), 1U);
    EXPECT_GE(ear.pauses[0].length(), 1'000'000);
}

// The pause begins when the last of it has ended: `begin` adds to what the rank does, `end` ends all and says when.
void expectPausedAfter(const std::function<void(RunControl&)>& begin, const std::function<TimeNs(RunControl&, ManualClock&)>& end)
{
    ManualClock clock;
    Ear ear;
    RunControl control(1, clock, ear.listener());
    ASSERT_TRUE(control.enter(Rank{0}));
    begin(control);
    std::jthread controller([&] { control.superviseRanks(); });
    control.pause();
    const TimeNs lastEnd = end(control, clock);
    ear.waitForStates(1);
    control.resume();
    ASSERT_TRUE(control.enter(Rank{0}));
    control.leave();
    controller.join();
    ASSERT_EQ(ear.pauses.size(), 1U);
    EXPECT_GT(ear.pauses[0].begin, lastEnd);
}

TEST(RunControl, IsNotPausedWhileOneRankStillExecutes)
{
    expectPausedAfter([](RunControl&) {},
                      [](RunControl& control, ManualClock& clock) {
                          clock.advance(500); // the action goes on for so long
                          const TimeNs actionEnd = clock.now();
                          control.rest(Rank{0});
                          return actionEnd;
                      });
}

TEST(RunControl, IsNotPausedWhileACopyGoesOnBesideTheRank)
{
    expectPausedAfter([](RunControl& control) { control.beginBeside(Rank{0}); },
                      [](RunControl& control, ManualClock& clock) {
                          control.rest(Rank{0});
                          const TimeNs copyEnd = clock.now();
                          control.endBeside(Rank{0});
                          return copyEnd;
                      });
}

TEST(RunControl, KeepsTheFirstFailureAndCancelsWaitsOnce)
{
    ManualClock clock;
    RunControl control(1, clock, {[](SessionState) {}, [](traces::Interval) {}});
    int cancelled = 0;
    control.onEnding([&] { ++cancelled; });
    engine::FailureMessage first;
    first.text = "first";
    engine::FailureMessage second;
    second.text = "second";
    control.fail(first);
    control.fail(second);
    EXPECT_EQ(control.failure()->text, "first");
    EXPECT_EQ(cancelled, 1);
    EXPECT_FALSE(control.enter(Rank{0}));
}

TEST(RunControl, CancelsAtOnceWhereItHasEndedAlready)
{
    ManualClock clock;
    RunControl control(1, clock, {[](SessionState) {}, [](traces::Interval) {}});
    control.stop();
    bool cancelled = false;
    control.onEnding([&] { cancelled = true; });
    EXPECT_TRUE(cancelled);
}

// stop() comes from the session's thread, and the ranks may all be gone before it has woken them.
TEST(RunControl, LetsNobodyClearTheCancellingWhileItGoesOn)
{
    ManualClock clock;
    RunControl control(1, clock, {[](SessionState) {}, [](traces::Interval) {}});
    std::atomic<bool> cancelling{false};
    std::atomic<bool> clearing{false};
    std::atomic<bool> cancelled{false};
    control.onEnding([&] {
        cancelling = true;
        cancelling.notify_all();
        clearing.wait(false);
        for (int i = 0; i < 1000; ++i) std::this_thread::yield(); // a chance for a clearing that does not wait
        cancelled = true;
    });
    std::jthread session([&] { control.stop(); });
    cancelling.wait(false);
    clearing = true;
    clearing.notify_all();
    control.onEnding({});
    EXPECT_TRUE(cancelled);
}

// A clock that tells when somebody looks.
class WatchedClock final : public Clock {
public:
    [[nodiscard]] TimeNs now() const noexcept override
    {
        const TimeNs time = inner.now();
        ++looks;
        looks.notify_all();
        return time;
    }
    void waitForLooks(int count) const
    {
        for (int seen = looks; seen < count; seen = looks) looks.wait(seen);
    }
    ManualClock inner;
    mutable std::atomic<int> looks{0};
};

// Two ranks and a pause: rank 0 acts, rank 1 is turned away at once, and a millisecond goes by.
class TurnedAway : public testing::Test {
protected:
    TurnedAway()
    {
        EXPECT_TRUE(control.enter(Rank{0}));
        control.pause();
        turnedAway = std::jthread([this] {
            control.enter(Rank{1});
            control.leave();
        });
        clock.waitForLooks(1);
        clock.inner.advance(1'000'000);
        controller = std::jthread([this] { control.superviseRanks(); });
    }

    WatchedClock clock;
    Ear ear;
    RunControl control{2, clock, ear.listener()};
    std::jthread turnedAway;
    std::jthread controller;
};

// Rank 1 is turned away at once, rank 0 acts for long after that: rank 1 is not idle meanwhile but paused.
TEST_F(TurnedAway, CountsAsPausedFromThen)
{
    control.rest(Rank{0});
    ear.waitForStates(1);
    control.resume();
    ASSERT_TRUE(control.enter(Rank{0}));
    control.leave();
    turnedAway.join();
    controller.join();
    ASSERT_EQ(ear.pauses.size(), 1U);
    EXPECT_GE(ear.pauses[0].length(), 1'000'000);
}

TEST_F(TurnedAway, HasItsPauseRecordedAlsoWhereThatWasTakenBackBeforeAllRested)
{
    control.resume();
    turnedAway.join(); // let through, though rank 0 never rested
    control.leave();
    controller.join();
    ASSERT_EQ(ear.pauses.size(), 1U);
    EXPECT_GE(ear.pauses[0].length(), 1'000'000);
    EXPECT_TRUE(ear.states.empty());
}

TEST(RunControl, RecordsAPauseWithoutLengthWhereTheClockStandsStill)
{
    ManualClock clock;
    Ear ear;
    RunControl control(1, clock, ear.listener());
    control.pause();
    std::jthread run([&] { EXPECT_TRUE(control.passGate(4711)); });
    ear.waitForStates(1);
    control.resume();
    run.join();
    EXPECT_EQ(ear.states, (std::vector{SessionState::Paused, SessionState::Running}));
    EXPECT_EQ(ear.pauses, (std::vector{traces::Interval{4711, 4711}}));
}

TEST(RunControl, StopEndsAPauseAndNotesIt)
{
    ManualClock clock;
    Ear ear;
    RunControl control(1, clock, ear.listener());
    std::jthread rank([&] {
        while (control.enter(Rank{0})) control.rest(Rank{0});
        control.leave();
    });
    std::jthread controller([&] { control.superviseRanks(); });
    control.pause();
    ear.waitForStates(1);
    control.stop();
    rank.join();
    controller.join();
    EXPECT_EQ(ear.pauses.size(), 1U);
    EXPECT_EQ(ear.states, (std::vector{SessionState::Paused}));
}

} // namespace
} // namespace stagecraft::runtime
