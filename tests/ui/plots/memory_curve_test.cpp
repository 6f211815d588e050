// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/memory_curve.h"

#include <gtest/gtest.h>

#include <random>

namespace stagecraft::ui {
namespace {

using namespace traces;

TEST(MemoryCurve, SumsTheClassesOfARank)
{
    Trace trace;
    trace.addMemory(Rank{0}, MemoryClass::Weights, 0, 1000);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 10, 50);
    trace.addMemory(Rank{1}, MemoryClass::Activations, 15, 7);
    trace.addMemory(Rank{0}, MemoryClass::Gradients, 10, 5);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 20, 0);
    MemoryCurve all(Rank{0}, MemoryCurve::kAllClasses);
    all.update(trace);
    EXPECT_EQ(all.points(), (std::vector<RankPoint>{{0, 1000}, {10, 1055}, {20, 1005}}));
    EXPECT_EQ(all.at(-1), 0);
    EXPECT_EQ(all.at(10), 1055);
    EXPECT_EQ(all.at(19), 1055);
    EXPECT_EQ(all.at(1000), 1005);
    EXPECT_EQ(all.highest(), (RankPoint{10, 1055}));
    MemoryCurve weights(Rank{0}, 1U << static_cast<unsigned>(MemoryClass::Weights));
    weights.update(trace);
    EXPECT_EQ(weights.points(), (std::vector<RankPoint>{{0, 1000}}));
}

TEST(MemoryCurve, IsEmptyWhereNothingIsKnown)
{
    MemoryCurve curve(Rank{3}, MemoryCurve::kAllClasses);
    EXPECT_EQ(curve.update(Trace{}), 0U);
    EXPECT_EQ(curve.highest(), RankPoint{});
    EXPECT_EQ(curve.at(5), 0);
}

TEST(MemoryCurve, TellsHowMuchStayedTheSame)
{
    Trace trace;
    trace.addMemory(Rank{0}, MemoryClass::Activations, 0, 1);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 5, 2);
    MemoryCurve curve(Rank{0}, MemoryCurve::kAllClasses);
    EXPECT_EQ(curve.update(trace), 0U);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 9, 3);
    EXPECT_EQ(curve.update(trace), 2U);
    trace.addMemory(Rank{0}, MemoryClass::Weights, 9, 10); // changes the last point
    EXPECT_EQ(curve.update(trace), 2U);
    EXPECT_EQ(curve.points().back(), (RankPoint{9, 13}));
    trace.addMemory(Rank{0}, MemoryClass::Gradients, 2, 100); // older than what was summed
    EXPECT_EQ(curve.update(trace), 0U);
    EXPECT_EQ(curve.points(), (std::vector<RankPoint>{{0, 1}, {2, 101}, {5, 102}, {9, 113}}));
    EXPECT_EQ(curve.update(trace), 4U);
}

// In whatever pieces a trace arrives, the sum is that of the whole.
TEST(MemoryCurve, DoesNotDependOnHowTheTraceArrived)
{
    std::mt19937 random(11);
    for (int round = 0; round < 50; ++round) {
        Trace trace;
        MemoryCurve piecewise(Rank{0}, MemoryCurve::kAllClasses);
        TimeNs t = 0;
        for (int i = 0; i < 60; ++i) {
            t += random() % 3;
            trace.addMemory(Rank{0}, static_cast<MemoryClass>(random() % kMemoryClassCount), t - static_cast<TimeNs>(random() % 2), random() % 1000);
            if (random() % 4 == 0) piecewise.update(trace);
        }
        piecewise.update(trace);
        MemoryCurve whole(Rank{0}, MemoryCurve::kAllClasses);
        whole.update(trace);
        ASSERT_EQ(piecewise.points(), whole.points());
        ASSERT_EQ(piecewise.highest().value, whole.highest().value);
        ASSERT_EQ(piecewise.highest().time, whole.highest().time);
    }
}

} // namespace
} // namespace stagecraft::ui
