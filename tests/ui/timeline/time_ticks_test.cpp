// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_ticks.h"

#include <gtest/gtest.h>

#include <set>

namespace stagecraft::ui {
namespace {

using traces::TimeNs;

TEST(TimeTicks, LieAtRoundTimes)
{
    const TimeTicks ticks = timeTicks({{0, 0, 36e6}, 0, 1100}, 90); // 36 ms on 1100 pixels: 2.95 ms for 90
    EXPECT_EQ(ticks.step, 5'000'000);
    ASSERT_EQ(ticks.ticks.size(), 8U);
    EXPECT_EQ(ticks.ticks[0].label, "0");
    EXPECT_EQ(ticks.ticks[3].time, 15'000'000);
    EXPECT_EQ(ticks.ticks[3].label, "15 ms");
}

TEST(TimeTicks, ShowAsManyDecimalsAsTheStepNeeds)
{
    const TimeTicks ticks = timeTicks({{17'000'000, 0, 2e6}, 0, 1000}, 90); // step 0.2 ms
    EXPECT_EQ(ticks.step, 200'000);
    EXPECT_EQ(ticks.ticks[1].label, "17.2 ms");
}

TEST(TimeTicks, CountFromABaseWhenFarZoomedIn)
{
    const TimeNs far = 12'345'678'901'234;
    const TimeTicks ticks = timeTicks({{far, 0, 1000}, 0, 1000}, 90);
    EXPECT_FALSE(ticks.base.isEmpty());
    EXPECT_TRUE(ticks.ticks.front().label.startsWith(QLatin1Char('+'))) << ticks.ticks.front().label.toStdString();
}

// Whatever the view: at least the distance asked for, inside the view, and no label twice.
TEST(TimeTicks, CanAlwaysBeToldApart)
{
    for (const TimeNs origin : {TimeNs{0}, TimeNs{999'999}, TimeNs{123'456'789'012}, TimeNs{-40'000'000}})
        for (double length = 20; length < 1e13; length *= 3.7) {
            const TimeMapping map({origin, 0.3, length}, 100, 1500);
            const TimeTicks ticks = timeTicks(map, 90);
            std::set<QString> labels;
            double last = -1e9;
            for (const TimeTick& tick : ticks.ticks) {
                EXPECT_EQ(tick.time % ticks.step, 0);
                const double x = map.x(tick.time);
                EXPECT_GE(x, 99.4);
                EXPECT_LE(x, 1601);
                EXPECT_GE(x - last, 89.9);
                last = x;
                EXPECT_TRUE(labels.insert(tick.label).second) << tick.label.toStdString() << " at length " << length;
                EXPECT_LE(tick.label.size(), 12) << tick.label.toStdString();
            }
            EXPECT_LE(ticks.ticks.size(), 18U);
            EXPECT_GE(ticks.ticks.size(), length >= 1000 ? 2U : 0U);
        }
}

TEST(TimeTicks, HaveARealMicroSign) { EXPECT_EQ(durationText(83'330), QString::fromUtf8("83.33 \u00b5s")); }

} // namespace
} // namespace stagecraft::ui
