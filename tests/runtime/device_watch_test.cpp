// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_watch.h"
#include "tests/runtime/manual_clock.h"

#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using traces::ActionKind;
using traces::MicroBatch;
using traces::Rank;
using traces::Stage;
using traces::Step;
using traces::Work;

constexpr TimeNs kPatience = 1'000'000;
const Work kForward{ActionKind::Forward, traces::Flow::Single, Stage{1}, MicroBatch{2}};
const Work kBackward{ActionKind::Backward, traces::Flow::Single, Stage{0}, MicroBatch{3}};

struct DeviceWatchTest : testing::Test {
    ManualClock clock;
    DeviceWatch watch{2, clock, kPatience};
};

TEST_F(DeviceWatchTest, KnowsOfNoWaitThatIsOver)
{
    {
        const DeviceWatch::Wait here(&watch, Rank{0}, Step{0}, kForward);
        clock.advance(kPatience / 2);
        EXPECT_FALSE(watch.silent());
    }
    clock.advance(2 * kPatience);
    EXPECT_FALSE(watch.silent());
    const DeviceWatch::Wait nobodys(nullptr, Rank{7}, Step{0}, kForward);
    EXPECT_FALSE(watch.silent());
}

TEST_F(DeviceWatchTest, NamesTheLongestThatIsTooLong)
{
    const DeviceWatch::Wait first(&watch, Rank{1}, Step{4}, kForward);
    clock.advance(kPatience / 2);
    const DeviceWatch::Wait second(&watch, Rank{0}, Step{5}, kBackward);
    clock.advance(kPatience);
    const auto silent = watch.silent();
    ASSERT_TRUE(silent);
    EXPECT_EQ(silent->rank, Rank{1});
    EXPECT_EQ(silent->step, Step{4});
    EXPECT_EQ(silent->work, kForward);
}

// A piece of the preparation after the other may take its time.
TEST_F(DeviceWatchTest, KnowsWhatIsPreparedAndThatItGoesOn)
{
    const DeviceWatch::Wait here(&watch, Rank{1}, "building its stages");
    clock.advance(kPatience - 100);
    watch.goesOn();
    clock.advance(kPatience - 100);
    EXPECT_FALSE(watch.silent());
    clock.advance(200);
    const auto silent = watch.silent();
    ASSERT_TRUE(silent);
    EXPECT_EQ(silent->rank, Rank{1});
    EXPECT_EQ(silent->doing, "building its stages");
}

// Each has its own: what one no longer waits for says nothing of the other.
TEST_F(DeviceWatchTest, KeepsTheThreadsOfARankApart)
{
    const DeviceWatch::Wait here(&watch, Rank{1}, "making what it hands over", DeviceWatch::Thread::Own);
    clock.advance(kPatience - 100);
    for (const auto beside : {DeviceWatch::Thread::Sums, DeviceWatch::Thread::Copies, DeviceWatch::Thread::Memory, DeviceWatch::Thread::Preparing}) {
        const DeviceWatch::Wait other(&watch, Rank{1}, "looking", beside);
        watch.goesOn();
    }
    clock.advance(200);
    ASSERT_TRUE(watch.silent());
    EXPECT_EQ(watch.silent()->doing, "making what it hands over");
}

// Others may be long in coming, and are no more once the run ends.
TEST_F(DeviceWatchTest, CountsAWaitThatNeedsOthersFromTheEndOfTheRun)
{
    const DeviceWatch::Wait here(&watch, Rank{1}, DeviceWatch::OfOthers{"ending its exchanges"});
    clock.advance(10 * kPatience);
    EXPECT_FALSE(watch.silent());
    watch.runEnds();
    clock.advance(kPatience - 100);
    EXPECT_FALSE(watch.silent());
    watch.runEnds(); // it ended before
    clock.advance(200);
    const auto silent = watch.silent();
    ASSERT_TRUE(silent);
    EXPECT_EQ(silent->rank, Rank{1});
    EXPECT_EQ(silent->doing, "ending its exchanges");
}

TEST_F(DeviceWatchTest, CountsAWaitThatNeedsOthersFromItsOwnBeginWhereTheRunEndedBefore)
{
    watch.runEnds();
    clock.advance(10 * kPatience);
    const DeviceWatch::Wait here(&watch, Rank{0}, DeviceWatch::OfOthers{"ending its exchanges"});
    clock.advance(kPatience - 100);
    EXPECT_FALSE(watch.silent());
    clock.advance(200);
    EXPECT_TRUE(watch.silent());
}

// What is around it has waited for something that came.
TEST_F(DeviceWatchTest, BeginsAnewWhenAWaitWithinIsOver)
{
    const DeviceWatch::Wait outer(&watch, Rank{0}, Step{0}, kForward);
    clock.advance(kPatience / 2);
    {
        const DeviceWatch::Wait inner(&watch, Rank{0}, Step{0}, kBackward);
        clock.advance(kPatience + 100);
        ASSERT_TRUE(watch.silent());
        EXPECT_EQ(watch.silent()->work, kBackward);
    }
    clock.advance(kPatience / 2);
    EXPECT_FALSE(watch.silent());
    clock.advance(kPatience);
    ASSERT_TRUE(watch.silent());
    EXPECT_EQ(watch.silent()->work, kForward);
}

} // namespace
} // namespace stagecraft::runtime
