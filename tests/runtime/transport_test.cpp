// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/local_handoff.h"
#include "engine/transport/step_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace stagecraft::runtime {
namespace {

using traces::MicroBatch;
using traces::Stage;

BoxAddress box(Direction direction, int stage, int microbatch)
{
    return {direction, Stage{stage}, MicroBatch{microbatch}};
}

TEST(LocalHandoff, MovesThePayloadAndTellsWhenItWasThere)
{
    LocalHandoff<std::unique_ptr<int>> handoff(2, 2, {});
    handoff.put(box(Direction::Forward, 1, 0), std::make_unique<int>(7), TimeNs{123});
    EXPECT_TRUE(handoff.full(box(Direction::Forward, 1, 0)));
    EXPECT_FALSE(handoff.full(box(Direction::Backward, 1, 0)));
    EXPECT_FALSE(handoff.full(box(Direction::Forward, 1, 1)));
    const auto arrival = handoff.take(box(Direction::Forward, 1, 0));
    ASSERT_TRUE(arrival);
    EXPECT_EQ(*arrival->payload, 7);
    EXPECT_EQ(arrival->available, 123);
    EXPECT_FALSE(handoff.full(box(Direction::Forward, 1, 0))); // ready for the next step
}

TEST(LocalHandoff, WakesAReceiverThatSleeps)
{
    LocalHandoff<int> handoff(1, 1, {});
    std::optional<Arrival<int>> arrival;
    std::jthread receiver([&] { arrival = handoff.take(box(Direction::Backward, 0, 0)); });
    handoff.put(box(Direction::Backward, 0, 0), 5, monotonicClock());
    receiver.join();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(arrival->payload, 5);
}

TEST(LocalHandoff, CancelEndsEveryWait)
{
    LocalHandoff<int> handoff(2, 1, {.spins = 100});
    std::atomic<int> empty{0};
    {
        std::vector<std::jthread> receivers;
        for (int stage = 0; stage < 2; ++stage) {
            receivers.emplace_back([&, stage] {
                if (!handoff.take(box(Direction::Forward, stage, 0))) ++empty;
            });
        }
        handoff.cancel();
    }
    EXPECT_EQ(empty, 2);
    handoff.put(box(Direction::Forward, 0, 0), 1, TimeNs{0}); // too late: dropped, not delivered
    EXPECT_FALSE(handoff.take(box(Direction::Forward, 0, 0)));
}

TEST(StepBarrier, LetsNobodyOnBeforeTheLastOneHasDoneTheStepsWork)
{
    constexpr int kRanks = 3;
    constexpr int kSteps = 200;
    StepBarrier barrier(kRanks, {.spins = 50});
    std::vector<int> done(kSteps, 0); // not atomic on purpose: the barrier orders it
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> ranks;
        for (int r = 0; r < kRanks; ++r) {
            ranks.emplace_back([&] {
                for (std::size_t step = 0; step < kSteps; ++step) {
                    if (!barrier.arrive([&] { ++done[step]; }, [] {})) ++wrong;
                    if (done[step] != 1) ++wrong;
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0);
}

TEST(StepBarrier, CancelWakesThoseWhoWaitAndTurnsAwayThoseWhoCome)
{
    StepBarrier barrier(2, {});
    std::atomic<bool> passed{true};
    std::jthread waiting([&] { passed = barrier.arrive([] {}, [] {}); });
    barrier.cancel();
    waiting.join();
    EXPECT_FALSE(passed);
    EXPECT_FALSE(barrier.arrive([] {}, [] {}));
}

} // namespace
} // namespace stagecraft::runtime
