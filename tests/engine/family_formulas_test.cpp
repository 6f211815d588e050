// SPDX-License-Identifier: Apache-2.0
//
// Makespan and peak activations of the families as their files state them, over a grid of ranks, micro-batches and chunks, in
// slots: F takes one, B two, of a rank; transfers are free unless said.
#include "unit_costs.h"

#include <algorithm>
#include <functional>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

struct Shape {
    int p, m, v;
};

void overTheGrid(const std::vector<int>& chunks, const std::function<void(Shape)>& check)
{
    for (const int p : {1, 2, 3, 4, 7})
        for (const int m : {1, 2, 3, 4, 6, 8, 14, 21})
            for (const int v : chunks) {
                SCOPED_TRACE("p=" + std::to_string(p) + " m=" + std::to_string(m) + " v=" + std::to_string(v));
                check({p, m, v});
            }
}

traces::StepFigures unitFigures(const char* name, const Shape& shape, traces::TimeNs transfer = 0)
{
    return figuresOf(made(name, shape.p, shape.m, shape.v), slotCosts(shape.p * shape.v, kSlot, 2 * kSlot, transfer));
}

TEST(FamilyFormulas, OfGPipeLastInFirstOut)
{
    overTheGrid({1}, [](const Shape& s) {
        const traces::StepFigures figures = unitFigures("gpipe-lifo", s);
        EXPECT_EQ(figures.makespan, 3 * (s.m + s.p - 1) * kSlot);
        for (const traces::RankFigures& rank : figures.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, s.m);
    });
}

TEST(FamilyFormulas, OfEagerOneFOneB)
{
    overTheGrid({1}, [](const Shape& s) {
        const traces::StepFigures figures = unitFigures("eager-1f1b", s);
        EXPECT_EQ(figures.makespan, 3 * (s.m + s.p - 1) * kSlot);
        for (std::size_t r = 0; r < figures.ranks.size(); ++r)
            EXPECT_DOUBLE_EQ(figures.ranks[r].peakActivations, std::min(2 * (s.p - 1 - static_cast<int>(r)) + 1, s.m));
        // half a slot on the way: it costs the first micro-batch's way there and back, and no more
        EXPECT_EQ(unitFigures("eager-1f1b", s, kSlot / 2).makespan, figures.makespan + (s.p - 1) * kSlot);
    });
}

// Reference values of an independent simulation with half a slot of latency, where 1F1B takes 41, 151 and 33.
TEST(FamilyFormulas, OfEagerOneFOneBAgainstOneFOneBWithLatency)
{
    EXPECT_EQ(unitFigures("eager-1f1b", {4, 8, 1}, kSlot / 2).makespan, 36 * kSlot);
    EXPECT_EQ(unitFigures("eager-1f1b", {8, 32, 1}, kSlot / 2).makespan, 124 * kSlot);
    EXPECT_EQ(unitFigures("eager-1f1b", {3, 7, 1}, kSlot / 2).makespan, 29 * kSlot);
}

TEST(FamilyFormulas, OfLoopedBreadthFirst)
{
    overTheGrid({1, 2, 3}, [](const Shape& s) {
        const traces::StepFigures figures = unitFigures("looped-bfs", s);
        if (s.m >= s.p) {
            EXPECT_EQ(figures.makespan, 3 * (s.m * s.v + s.p - 1) * kSlot);
        }
        for (const traces::RankFigures& rank : figures.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, s.m);
    });
}

// arXiv 2401.10241 table 2 and appendix H. Times of a rank: F 5, I 4, W 3, so that no two sums agree by chance.
TEST(FamilyFormulas, OfTheHandMadeZeroBubbleSchedules)
{
    constexpr traces::TimeNs kForward = 5, kInput = 4, kWeight = 3;
    overTheGrid({1}, [](const Shape& s) {
        engine::CostTable costs = slotCosts(s.p, kForward, kInput + kWeight);
        for (engine::StageCosts& stage : costs.stages) {
            stage.inputGrad = kInput;
            stage.weightGrad = kWeight;
        }
        const traces::TimeNs work = s.m * (kForward + kInput + kWeight);
        const traces::StepFigures h1 = figuresOf(made("zb-h1", s.p, s.m), costs);
        if (s.m >= s.p) {
            EXPECT_EQ(h1.makespan, work + (s.p - 1) * (kForward + kInput - kWeight));
        } else {
            EXPECT_EQ(h1.makespan, (s.m + s.p - 1) * (kForward + kInput) + kWeight);
        }
        for (const traces::RankFigures& rank : h1.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, std::min(s.p, s.m));

        const traces::StepFigures h2 = figuresOf(made("zb-h2", s.p, s.m), costs);
        if (s.m >= 2 * s.p) {
            EXPECT_EQ(h2.maxSpan, work + (s.p - 1) * (kForward + kInput - 2 * kWeight));
        }
        for (const traces::RankFigures& rank : h2.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, std::min(2 * s.p - 1, s.m));
    });
}

TEST(FamilyFormulas, OfInterleavedZeroBubble)
{
    overTheGrid({1, 2, 3}, [](const Shape& s) {
        if (!engine::checkRequest({"interleaved-zb", s.p, s.v, s.m}).ok()) return;
        const traces::StepFigures figures = unitFigures("interleaved-zb", s);
        if (s.m % s.p == 0) {
            EXPECT_EQ(figures.makespan, (3 * s.m * s.v + s.p - 1) * kSlot);
            for (const traces::RankFigures& rank : figures.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, s.p);
        }
    });
}

TEST(FamilyFormulas, OfForwardOnly)
{
    overTheGrid({1}, [](const Shape& s) {
        const traces::StepFigures figures = unitFigures("forward-only", s);
        EXPECT_EQ(figures.makespan, (s.m + s.p - 1) * kSlot);
        EXPECT_NEAR(figures.bubbleMakespan, (s.p - 1.0) / (s.m + s.p - 1), 1e-12);
        for (const traces::RankFigures& rank : figures.ranks) EXPECT_EQ(rank.peakActivations, 1); // nothing waits for a backward
    });
}

} // namespace
