// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_axis.h"

#include <QSignalSpy>

#include <gtest/gtest.h>

#include <random>

namespace stagecraft::ui {
namespace {

using traces::Interval;
using traces::TimeNs;

constexpr TimeNs kMs = 1'000'000;

TEST(TimeMapping, GoesBothWays)
{
    std::mt19937_64 random(7);
    for (int i = 0; i < 1000; ++i) {
        const auto origin = static_cast<TimeNs>(random() % 1'000'000'000'000'000ULL);
        const double length = std::pow(10.0, 2 + static_cast<double>(random() % 9));
        const TimeMapping map({origin, 0.25, length}, 130, 1000);
        const double x = 130 + static_cast<double>(random() % 1000);
        EXPECT_NEAR(map.x(map.time(x)), x, 0.5 / map.nsPerPixel() + 1e-9);
    }
}

TEST(TimeMapping, KeepsNanosecondsApartFarFromZero)
{
    const TimeNs year = 31'536'000LL * 1'000'000'000LL;
    const TimeMapping map({year, 0, 100}, 0, 1000);
    EXPECT_DOUBLE_EQ(map.x(year + 1) - map.x(year), 10);
    EXPECT_EQ(map.time(490), year + 49);
}

TEST(TimeMapping, GrowsWithTime)
{
    const TimeMapping map({-5, 0.5, 1234}, 20, 500);
    for (TimeNs t = -50; t < 2000; t += 7) EXPECT_LT(map.x(t), map.x(t + 1));
}

class Axis : public ::testing::Test {
protected:
    Axis() { axis_.setLimits({0, 100 * kMs}); }
    TimeAxis axis_;
};

TEST_F(Axis, ShowsAllAtFirstWithAMargin)
{
    EXPECT_TRUE(axis_.showsAll());
    EXPECT_EQ(axis_.range().first(), -1'500'000);
    EXPECT_EQ(axis_.range().last(), 101'500'000);
}

TEST_F(Axis, KeepsTheAnchorInPlaceWhenZooming)
{
    const TimeNs anchor = 30 * kMs;
    double place = axis_.range().at(anchor) / axis_.range().length;
    for (int i = 0; i < 40; ++i) {
        axis_.zoom(0.7, anchor);
        EXPECT_NEAR(axis_.range().at(anchor) / axis_.range().length, place, 1e-6);
    }
    EXPECT_FALSE(axis_.showsAll());
}

TEST_F(Axis, DoesNotZoomBeyondItsBounds)
{
    for (int i = 0; i < 200; ++i) axis_.zoom(0.5, 50 * kMs);
    EXPECT_DOUBLE_EQ(axis_.range().length, TimeAxis::kShortest);
    for (int i = 0; i < 200; ++i) axis_.zoom(2, 50 * kMs);
    EXPECT_TRUE(axis_.showsAll());
    EXPECT_EQ(axis_.range().first(), -1'500'000);
}

TEST_F(Axis, NeverLosesTheDataWhenPanned)
{
    axis_.setRange({40 * kMs, 50 * kMs});
    axis_.pan(1e12);
    EXPECT_EQ(axis_.range().first(), 95 * kMs); // the end of the data in the middle
    axis_.pan(-1e12);
    EXPECT_EQ(axis_.range().first(), -5 * kMs);
}

TEST_F(Axis, FollowsGrowingLimitsOnlyWhileItShowsAll)
{
    axis_.setLimits({0, 200 * kMs});
    EXPECT_EQ(axis_.range().last(), 203 * kMs);
    axis_.setRange({10 * kMs, 20 * kMs});
    axis_.setLimits({0, 300 * kMs});
    EXPECT_EQ(axis_.range().first(), 10 * kMs);
    EXPECT_EQ(axis_.range().last(), 20 * kMs);
}

TEST_F(Axis, GoesBackAndForwardThroughViews)
{
    axis_.setRange({10 * kMs, 20 * kMs});
    axis_.setRange({12 * kMs, 14 * kMs});
    axis_.back();
    EXPECT_EQ(axis_.range().first(), 10 * kMs);
    axis_.back();
    EXPECT_TRUE(axis_.showsAll());
    EXPECT_FALSE(axis_.canGoBack());
    axis_.forward();
    axis_.forward();
    EXPECT_EQ(axis_.range().first(), 12 * kMs);
    EXPECT_FALSE(axis_.canGoForward());
}

TEST_F(Axis, TakesAGestureAsOneView)
{
    for (int i = 0; i < 20; ++i) axis_.zoom(0.8, 50 * kMs);
    for (int i = 0; i < 20; ++i) axis_.pan(1000);
    axis_.back();
    EXPECT_TRUE(axis_.showsAll());
}

TEST_F(Axis, DropsTheWayForwardAfterANewView)
{
    axis_.setRange({10 * kMs, 20 * kMs});
    axis_.back();
    axis_.setRange({30 * kMs, 40 * kMs});
    EXPECT_FALSE(axis_.canGoForward());
}

TEST_F(Axis, KeepsTheNewestMomentNearTheRightEnd)
{
    axis_.follow(80 * kMs, 10.0 * kMs);
    EXPECT_DOUBLE_EQ(axis_.range().length, 10.0 * kMs);
    EXPECT_NEAR(axis_.range().at(80 * kMs) / axis_.range().length, 0.92, 1e-6);
    EXPECT_FALSE(axis_.canGoBack());
}

TEST_F(Axis, TellsOnceAboutEachChange)
{
    QSignalSpy changed(&axis_, &TimeAxis::rangeChanged);
    axis_.setRange({10 * kMs, 20 * kMs});
    axis_.setRange({10 * kMs, 20 * kMs});
    axis_.setLimits({0, 100 * kMs});
    EXPECT_EQ(changed.count(), 1);
}

TEST_F(Axis, SurvivesLimitsWithoutLength)
{
    axis_.setLimits({5, 5});
    EXPECT_GE(axis_.range().length, TimeAxis::kShortest);
    axis_.fit({7, 7});
    EXPECT_GE(axis_.range().length, TimeAxis::kShortest);
}

} // namespace
} // namespace stagecraft::ui
