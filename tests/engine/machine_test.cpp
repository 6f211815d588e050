// SPDX-License-Identifier: Apache-2.0
#include "machine_trace.h"
#include "random_case.h"

#include "engine/schedule/lower.h"
#include "engine/simulate/machine.h"

#include <gmock/gmock.h>

#include <set>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::SendMode;
using engine::TransferPlace;
using traces::LaneKind;
using traces::Rank;
using traces::TimeNs;

namespace {

// Two ways to the same times: one rank after the other, and all of them in the order of time.
TEST(Machine, TellsWhatThePlainSimulationTells)
{
    for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        for (engine::StageCosts& stage : drawn.costs.stages) {
            if (!drawn.schedule.asynchronous()) stage.optimizer = seed % 3 == 0 ? 100 : 0;
            stage.weightBytes = 10;
            stage.gradientBytes = 20;
        }
        drawn.costs.jitter = seed % 2 == 0 ? 0.1 : 0;
        const engine::Schedule schedule = seed % 5 == 0 ? engine::lowerCommunication(drawn.schedule).value() : drawn.schedule;
        const traces::Trace plain = simulated(schedule, drawn.costs);
        engine::Machine machine(schedule, drawn.costs);
        ASSERT_TRUE(machine.run(1, {}));
        const traces::Trace other = std::move(machine).trace();
        EXPECT_EQ(eventsOf(other), eventsOf(plain));
        EXPECT_EQ(edgesOf(other), edgesOf(plain));
        EXPECT_EQ(other.steps(), plain.steps());
        for (const traces::MemorySeries& series : plain.memory()) {
            const traces::MemorySeries* again = other.memorySeries(series.rank, series.memory);
            if (again == nullptr) { // nothing was ever held
                EXPECT_EQ(*std::max_element(series.value.begin(), series.value.end()), 0);
                continue;
            }
            for (std::size_t i = 0; i < series.time.size(); ++i)
                if (i + 1 == series.time.size() || series.time[i + 1] != series.time[i]) {
                    EXPECT_EQ(again->valueAt(series.time[i]), series.value[i]) << "rank " << series.rank.value;
                }
        }
        for (std::size_t r = 0; r < figuresIn(plain).ranks.size(); ++r)
            EXPECT_EQ(figuresIn(other).ranks[r].peakMemory, figuresIn(plain).ranks[r].peakMemory);
    }
}

// p=2, m=2, F = B = hop = 1 slot, GPipe: 0F0 [0,1], sends it [1,2], 0F1 [2,3], sends it [3,4]; rank 1 receives until 2, 1F0 [2,3],
// receives the second until 4, 1F1 [4,5], 1B0 [5,6], sends [6,7], 1B1 [7,8], sends [8,9]; 0B0 [7,8], waits until 9, 0B1 [9,10].
TEST(Machine, KeepsBothRanksInATransferThatOccupiesThem)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot, kSlot);
    costs.machine.transfers = TransferPlace::Ranks;
    const traces::Trace trace = simulated(made("gpipe", 2, 2), costs);
    EXPECT_EQ(endOf(trace, "0SEND_F0"), 2 * kSlot);
    EXPECT_EQ(endOf(trace, "0F1"), 3 * kSlot);
    EXPECT_EQ(endOf(trace, "1F1"), 5 * kSlot);
    EXPECT_EQ(endOf(trace, "1B1"), 8 * kSlot);
    const traces::StepFigures figures = figuresIn(trace);
    EXPECT_EQ(figures.makespan, 10 * kSlot);
    EXPECT_EQ(figures.ranks[0].busy, 4 * kSlot);
    EXPECT_EQ(idleBy(figures, 0, traces::GapCause::Unexplained), 0);
    EXPECT_EQ(idleBy(figures, 1, traces::GapCause::Unexplained), 0);
}

// The same with transfers beside the computing: 0F1 [1,2] is sent [2,3]; 1F0 [2,3], 1F1 [3,4], 1B0 [4,5], 1B1 [5,6], 0B0 [6,7], 0B1 [7,8].
TEST(Machine, LetsRanksComputeBesideTransfersThatOccupyNothing)
{
    EXPECT_EQ(figuresOf(made("gpipe", 2, 2), slotCosts(2, kSlot, kSlot, kSlot)).makespan, 8 * kSlot);
}

// A hop of three slots and a forward of one: on a copy lane of its own each rank sends one thing at a time, so 0F2, done at 3, is
// on the way from 7 to 10.
TEST(Machine, SendsOneThingAtATimeOverACopyLane)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot, 3 * kSlot);
    costs.machine.transfers = TransferPlace::CopyLane;
    const traces::Trace trace = simulated(made("gpipe", 2, 3), costs);
    EXPECT_EQ(endOf(trace, "0F2"), 3 * kSlot);
    EXPECT_EQ(endOf(trace, "0SEND_F2"), 10 * kSlot);
    EXPECT_FALSE(trace.findLane(Rank{0}, LaneKind::Transfer, 1).has_value());
}

// Four ranks, two nodes. Between them a hop takes 1 slot of latency and 2 on the way; inside a node half a slot.
TEST(Machine, TakesTheWayBetweenNodesWhereRanksLieOnTwo)
{
    engine::CostTable costs = slotCosts(4, kSlot, kSlot, kSlot / 2);
    for (engine::StageCosts& stage : costs.stages) stage.outputBytes = 2000;
    costs.inside = {.latency = kSlot / 2};
    costs.machine.ranksPerNode = 2;
    costs.machine.between = {.latency = kSlot, .bytesPerSecond = 1e6}; // 2000 bytes: 2 ms
    const traces::Trace trace = simulated(made("gpipe", 4, 1), costs);
    EXPECT_EQ(endOf(trace, "1F0"), 5 * kSlot / 2);
    EXPECT_EQ(endOf(trace, "2F0"), 13 * kSlot / 2); // 2.5 + 1 + 2 + 1
    EXPECT_EQ(endOf(trace, "3F0"), 8 * kSlot);
}

TEST(Machine, QueuesWhatSharesAWay)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.outputBytes = 3000;
    costs.inside = {.latency = kSlot / 4, .bytesPerSecond = 1e6}; // 3 slots on the way
    costs.transfer = kSlot / 4 + 3 * kSlot;
    costs.machine.sharedLinks = true;
    const traces::Trace trace = simulated(made("gpipe", 2, 3), costs);
    // ready at 1, 2, 3; on the way [1,4], [4,7], [7,10], each a quarter later at the other side
    EXPECT_EQ(endOf(trace, "0SEND_F0"), 17 * kSlot / 4);
    EXPECT_EQ(endOf(trace, "0SEND_F1"), 29 * kSlot / 4);
    EXPECT_EQ(endOf(trace, "0SEND_F2"), 41 * kSlot / 4);
    costs.machine.sharedLinks = false;
    EXPECT_EQ(endOf(simulated(made("gpipe", 2, 3), costs), "0SEND_F2"), 25 * kSlot / 4);
}

// Stages 0 and 2 lie on node 0, stages 1 and 3 on node 1; a message takes 2 slots of the one way between the nodes. What rank 0
// makes of micro-batch 1 and rank 1 of micro-batch 0 takes that way, whose user the other has to wait for.
TEST(Machine, SharesTheWayBetweenNodesAmongAllRanksOfANode)
{
    const engine::Schedule schedule = engine::parseSchedule("0F0,0F1\n2F0,2F1\n1F0,1F1\n3F0,3F1\n").value();
    engine::CostTable costs = slotCosts(4, kSlot / 2, kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.outputBytes = 2000;
    costs.machine.ranksPerNode = 2;
    costs.machine.between = {.latency = 0, .bytesPerSecond = 1e6};
    costs.stages[0].forward = 2 * kSlot; // 0F0 [0,2], 1F0 [4,4.5], 2F0 [6.5,7]; 0F1 [2,4] is sent [4,6]
    const auto end = [&](bool shared) {
        costs.machine.sharedLinks = shared;
        return endOf(simulated(schedule, costs), "3F0");
    };
    EXPECT_EQ(end(false), 19 * kSlot / 2);
    EXPECT_EQ(end(true), 19 * kSlot / 2); // the way is free again at 6
    costs.stages[0].forward = 3 * kSlot;  // 0F0 [0,3], 1F0 [5,5.5], 2F0 [7.5,8]; 0F1 [3,6] is sent [6,8], 2F0's message from 8
    EXPECT_EQ(end(true), 21 * kSlot / 2);
    costs.stages[0].forward = 7 * kSlot / 2; // 0F0 ends at 3.5, 2F0 at 8.5; 0F1 ends at 7 and is sent [7,9]: 2F0's message waits half a slot
    EXPECT_EQ(end(false), 11 * kSlot);
    EXPECT_EQ(end(true), 23 * kSlot / 2);
}

TEST(Machine, SlowsARankAndStartsItLate)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.machine.rankScale = {1, 1.5};
    costs.machine.lateStart = {0, 5 * kSlot};
    const traces::Trace trace = simulated(made("gpipe", 2, 2), costs);
    EXPECT_EQ(endOf(trace, "1F0"), 13 * kSlot / 2);
    EXPECT_EQ(endOf(trace, "1B1"), 11 * kSlot);
    EXPECT_EQ(figuresIn(trace).makespan, 12 * kSlot); // 1B1 ends at 11, then 0B1
}

// ZB-H2's parallelogram: a step takes 27 slots from the first to the last, but each rank is full for 24, so that step follows
// step every 24 slots where nothing holds them together, and every 27 with a barrier (arXiv 2401.10241 sec. 5.3 and 4).
TEST(Machine, ChainsStepsAtThePaceOfASpanWithoutABarrier)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    const traces::Trace free = simulated(made("zb-h2", 4, 8), costs, 4);
    for (int step = 0; step < 4; ++step) EXPECT_EQ(free.steps()[static_cast<std::size_t>(step)].span, (traces::Interval{24 * kSlot * step, 24 * kSlot * step + 27 * kSlot}));
    costs.machine.barrier = true;
    const traces::Trace held = simulated(made("zb-h2", 4, 8), costs, 4);
    EXPECT_EQ(held.steps()[3].span, (traces::Interval{81 * kSlot, 108 * kSlot}));
}

TEST(Machine, HoldsTheOptimizersBackUntilAllRanksHaveTheirGradients)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.optimizer = kSlot;
    costs.machine.barrier = true;
    const traces::Trace trace = simulated(made("1f1b", 2, 2), costs); // F0 B0 F1 B1 of rank 1 end at 5, rank 0's last backward at 6
    EXPECT_EQ(endOf(trace, "1OPTIMIZER"), 7 * kSlot);
    EXPECT_EQ(endOf(trace, "0OPTIMIZER"), 7 * kSlot);
    const traces::StepFigures figures = figuresIn(trace);
    EXPECT_EQ(figures.makespan, 7 * kSlot);
    EXPECT_EQ(idleBy(figures, 1, traces::GapCause::WaitForStage), kSlot); // for rank 0, from 5 to 6
    EXPECT_EQ(idleBy(figures, 1, traces::GapCause::Unexplained), 0);
}

} // namespace
