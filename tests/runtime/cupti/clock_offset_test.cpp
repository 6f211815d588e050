// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace stagecraft::runtime {

namespace {

using traces::TimeNs;

TEST(ClockOffset, TakesTheTightestReading)
{
    TimeNs now = 1'000;
    int reading = 0;
    const auto host = [&] { return now; };
    const auto foreign = [&]() -> std::optional<TimeNs> {
        const TimeNs delay = ++reading == 4 ? 20 : 5'000;
        now += delay / 2;
        const TimeNs there = now + 777'000;
        now += delay - delay / 2;
        return there;
    };
    EXPECT_EQ(measureOffset(host, foreign), (ClockOffset{.offset = -777'000, .error = 10}));
    EXPECT_EQ(reading, kOffsetReadings);
}

TEST(ClockOffset, HasNoneWhereTheOtherCannotBeRead)
{
    int reading = 0;
    const auto host = [] { return TimeNs{5}; };
    EXPECT_EQ(measureOffset(host, [&]() -> std::optional<TimeNs> { return ++reading == 3 ? std::optional<TimeNs>(105) : std::nullopt; }),
              (ClockOffset{.offset = -100, .error = 0}));
    EXPECT_EQ(measureOffset(host, []() -> std::optional<TimeNs> { return std::nullopt; }), std::nullopt);
}

TEST(ClockOffset, IsWrongByNoMoreThanItSays)
{
    std::mt19937_64 random(3);
    for (int round = 0; round < 1'000; ++round) {
        const auto ahead = static_cast<TimeNs>(random() % 2'000'000'000'000) - 1'000'000'000'000;
        TimeNs now = static_cast<TimeNs>(random() % 1'000'000'000);
        const auto pause = [&] { now += static_cast<TimeNs>(random() % 3'000); };
        const auto measured = measureOffset([&] { pause(); return now; }, [&]() -> std::optional<TimeNs> { pause(); return now + ahead; });
        ASSERT_LE(std::abs(measured->offset + ahead), measured->error);
    }
}

} // namespace

} // namespace stagecraft::runtime
