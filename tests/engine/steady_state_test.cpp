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

} // namespace
