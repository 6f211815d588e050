// SPDX-License-Identifier: Apache-2.0
#include "traces/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stagecraft::traces {
namespace {

TEST(Counted, SaysOneThingInTheSingular)
{
    EXPECT_EQ(counted(1, "step"), "1 step");
    EXPECT_EQ(counted(std::size_t{1}, "micro-batch"), "1 micro-batch");
}

TEST(Counted, SaysAnyOtherNumberInThePlural)
{
    EXPECT_EQ(counted(0, "rank"), "0 ranks");
    EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
    EXPECT_EQ(counted(3, "entry"), "3 entries");
    EXPECT_EQ(counted(-1, "byte"), "-1 bytes");
    EXPECT_EQ(counted(std::int64_t{20'000'000'000}, "event"), "20000000000 events");
}

} // namespace
} // namespace stagecraft::traces
