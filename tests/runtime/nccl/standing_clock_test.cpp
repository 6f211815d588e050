// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/standing_clock.h"
#include "tests/runtime/manual_clock.h"

#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

// running 10, standing 50, running 20
TEST(StandingClock, LeavesOutWhatStandsStill)
{
    ManualClock clock(0);
    StandingClock standing(clock);
    EXPECT_EQ(standing.now(), 0);
    clock.advance(10);
    standing.tick(false);
    EXPECT_EQ(standing.now(), 10);
    clock.advance(30);
    standing.tick(true);
    clock.advance(20);
    standing.tick(true);
    EXPECT_EQ(standing.now(), 10);
    clock.advance(20);
    EXPECT_EQ(standing.now(), 30);
    standing.tick(false);
    EXPECT_EQ(standing.now(), 30);
}

} // namespace
} // namespace stagecraft::runtime
