// SPDX-License-Identifier: Apache-2.0
//
// The steady state of simulated steps against what is known of the schedules.
#include "unit_costs.h"

#include "traces/analysis/steady_state.h"

#include <cmath>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

std::optional<traces::SteadyState> steadyOf(const engine::Schedule& schedule, const engine::CostTable& costs)
{
    return traces::steadyState(engine::simulate(schedule, costs).value(), traces::Step{0});
}

// Every schedule that keeps going takes one micro-batch in the time of a rank's work for it, with equal stages and free transfers.
TEST(SteadyStateOfASimulation, IsARanksWorkForAMicroBatch)
{
    struct Case {
        const char* name;
        int chunks;
        int perMicroBatch; // slots
    };
    for (const Case& c : {Case{"1f1b", 1, 3}, Case{"eager-1f1b", 1, 3}, Case{"interleaved", 2, 6}, Case{"zb-h2", 1, 3}, Case{"seq1f1b", 1, 3}}) {
        engine::CostTable costs = slotCosts(4 * c.chunks, kSlot, 2 * kSlot);
        const std::optional<traces::SteadyState> steady = steadyOf(made(c.name, 4, 32, c.chunks), costs);
        ASSERT_TRUE(steady) << c.name;
        EXPECT_DOUBLE_EQ(steady->period, c.perMicroBatch * kSlot) << c.name;
        EXPECT_NEAR(steady->bubble, 0, 1e-9) << c.name;
    }
    EXPECT_FALSE(steadyOf(made("gpipe", 4, 32), slotCosts(4, kSlot, 2 * kSlot)));
}

// Two micro-batches are never in the pipeline at the same time: p(F + B), a bubble of (p-1)/p.
TEST(SteadyStateOfASimulation, OfOneAfterTheOtherIsTheWayThereAndBack)
{
    const std::optional<traces::SteadyState> steady = steadyOf(made("naive", 4, 12), slotCosts(4, kSlot, 2 * kSlot));
    ASSERT_TRUE(steady);
    EXPECT_DOUBLE_EQ(steady->period, 4 * 3 * kSlot);
    EXPECT_NEAR(steady->bubble, 3.0 / 4, 1e-9);
}

// Closed form of the published 1F1B column (arXiv 2401.10241, Tables 5 and 9): 2(p-1)m/p exposed transfers in m micro-batches.
TEST(SteadyStateOfASimulation, Pays1F1BsTransfersWithEveryMicroBatch)
{
    const traces::TimeNs hop = kSlot / 2;
    for (const int p : {2, 4, 8}) {
        const std::optional<traces::SteadyState> steady = steadyOf(made("1f1b", p, 8 * p), slotCosts(p, kSlot, 2 * kSlot, hop));
        ASSERT_TRUE(steady);
        EXPECT_EQ(steady->over, p);
        EXPECT_NEAR(steady->period, 3.0 * kSlot + 2.0 * (p - 1) / p * hop, 1e-6) << "p = " << p;
    }
    // twice the warm-up hides them
    EXPECT_DOUBLE_EQ(steadyOf(made("eager-1f1b", 4, 32), slotCosts(4, kSlot, 2 * kSlot, hop))->period, 3.0 * kSlot);
}

// Where a step shows a steady state, ranks idle in it what the period and their work leave, and with equal stages and free transfers
// no more than in the whole step, which fills and drains as well.
TEST(SteadyStateOfASimulation, NeverIdlesMoreThanTheStep)
{
    int shown = 0;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (const auto& [p, m] : {std::pair{2, 8}, {4, 8}, {4, 32}, {8, 16}, {12, 24}, {12, 48}}) {
            if (!engine::checkRequest({.name = family.name, .ranks = p, .chunks = family.minChunks, .microbatches = m}).ok()) continue;
            SCOPED_TRACE(family.name + " " + std::to_string(p) + " " + std::to_string(m));
            const engine::Schedule schedule = made(family.name, p, m, family.minChunks);
            const traces::Trace trace = engine::simulate(schedule, slotCosts(schedule.stages(), kSlot, 2 * kSlot)).value();
            const std::optional<traces::SteadyState> steady = traces::steadyState(trace, traces::Step{0});
            if (!steady) continue;
            ++shown;
            const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();
            EXPECT_GE(steady->bubble, -1e-9);
            EXPECT_LE(steady->bubble, figures.bubbleMakespan + 1e-9);
            EXPECT_NEAR((1 - steady->bubble) * steady->period, figures.work / m, 0.03 * figures.work / m);
        }
    EXPECT_GT(shown, 30);
}

// The middle of DualPipe with two micro-batches per rank is as long as it takes to turn around: nothing repeats in it.
TEST(SteadyStateOfASimulation, IsNoneWhereNothingRepeats)
{
    EXPECT_FALSE(steadyOf(made("dualpipe", 12, 24), slotCosts(12, kSlot, 2 * kSlot)));
}

} // namespace
