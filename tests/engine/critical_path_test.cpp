// SPDX-License-Identifier: Apache-2.0
//
// The critical path of simulated steps: what must hold for every schedule, and where it is known from the schedule's picture.
#include "random_case.h"

#include "traces/analysis/critical_path.h"

#include <random>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

traces::CriticalPath pathOf(const traces::Trace& trace) { return traces::criticalPath(trace, traces::Step{0}).value(); }

TEST(CriticalPathOfASimulation, TilesTheStepForEverySchedule)
{
    std::mt19937 random(7);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 300; ++round) {
        const engine::Schedule schedule = drawSchedule(random, static_cast<std::size_t>(round), 8, 16);
        SCOPED_TRACE(schedule.name + " in round " + std::to_string(round));
        engine::CostTable costs = slotCosts(schedule.stages(), 0, 0, among(0, 300));
        costs.jitter = among(0, 1) * 0.2;
        for (engine::StageCosts& stage : costs.stages) {
            stage.forward = among(1, 1000);
            stage.backward = among(2, 2000);
            stage.inputGrad = among(1, static_cast<int>(stage.backward) - 1);
            stage.weightGrad = stage.backward - stage.inputGrad;
            stage.overlap = stage.forward + stage.backward;
            stage.optimizer = among(0, 100);
        }
        const traces::Trace trace = engine::simulate(schedule, costs).value();
        const traces::CriticalPath path = pathOf(trace);
        const traces::TimeNs makespan = traces::stepFigures(trace, traces::Step{0}).value().makespan;

        traces::TimeNs at = path.span.begin;
        for (std::size_t i = 0; i < path.links.size(); ++i) {
            const traces::PathLink& link = path.links[i];
            EXPECT_EQ(link.span.begin, at) << "link " << i;
            EXPECT_EQ(link.length, link.span.length());
            // a simulated action begins as soon as it can, so nothing on the path waits for anything but data
            EXPECT_NE(link.kind, traces::PathKind::Wait) << "link " << i;
            if (link.kind == traces::PathKind::Transfer) {
                EXPECT_EQ(link.length, costs.transfer) << "link " << i;
            }
            if (link.kind == traces::PathKind::Compute) {
                EXPECT_EQ(link.span, (traces::Interval{trace.slice(link.from).begin, trace.slice(link.from).end}));
            }
            at = link.span.end;
        }
        EXPECT_EQ(path.total.sum(), makespan);
        traces::TimeNs ofRanks = 0;
        for (const traces::PathTimes& rank : path.ranks) ofRanks += rank.sum();
        EXPECT_EQ(ofRanks, makespan);
    }
}

// Making the slices on the path shorter makes the step shorter; the path of 1F1B with one slow stage stays on that stage.
TEST(CriticalPathOfASimulation, StaysOnTheSlowStage)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    costs.stages[2].forward *= 3;
    costs.stages[2].backward *= 3;
    const traces::CriticalPath path = pathOf(engine::simulate(made("1f1b", 4, 16), costs).value());
    // all micro-batches of the slow stage, the way in (2 F) and the way out (2 B)
    EXPECT_EQ(path.total.sum(), (16 * 9 + 2 + 4) * kSlot);
    EXPECT_EQ(path.stages[2].compute, 16 * 9 * kSlot);
}

// reference/figures.md and schedules.md: with c = 0.5 1F1B p=4 m=8 takes 41 slots of which 24 are a rank's work. Its path has
// 2(p-1)m/p + 2(p-2) = 16 transfers (closed form of the published 1F1B column); GPipe's 2(p-1) = 6.
TEST(CriticalPathOfASimulation, CountsTheTransfersThatADelayedStepPaysFor)
{
    const traces::TimeNs hop = kSlot / 2;
    EXPECT_EQ(pathOf(engine::simulate(made("1f1b", 4, 8), slotCosts(4, kSlot, 2 * kSlot, hop)).value()).total.transfer, 16 * hop);
    EXPECT_EQ(pathOf(engine::simulate(made("gpipe", 4, 8), slotCosts(4, kSlot, 2 * kSlot, hop)).value()).total.transfer, 6 * hop);
}

// The backward runs from 1000 to 4000 and makes three buckets, at 2000, 3000 and 4000; each takes 2 * 3/4 * 1000 + 2 * 3 * 10 ns among
// four replicas. The first begins at 2000 and from then on one follows the other, so the rest of the backward is not on the path.
TEST(CriticalPathOfASimulation, GoesThroughCollectivesToTheBackwardThatFedThem)
{
    engine::CostTable costs = slotCosts(1, 1000, 3000);
    costs.stages[0].gradientBytes = 3000;
    costs.stages[0].optimizer = 500;
    costs.machine.replicas = 4;
    costs.machine.replica = {.latency = 10, .bytesPerSecond = 1e9};
    costs.machine.bucketBytes = 1000;
    const traces::CriticalPath buckets = pathOf(engine::simulate(made("gpipe", 1, 1), costs).value());
    EXPECT_EQ(buckets.total, (traces::PathTimes{1000 + 1000 + 500, 3 * 1560, 0}));
    EXPECT_EQ(buckets.links.size(), 6U); // 0F0, a third of 0B0, three buckets, the update

    costs.stages[0].optimizer = 0;
    EXPECT_EQ(pathOf(engine::simulate(made("gpipe", 1, 1), costs).value()).total, (traces::PathTimes{2000, 3 * 1560, 0}));

    // as the schedule says: gathered before it is used, reduced behind the backward: 3/4 * 4000 + 3 * 10, and twice that for 8000
    costs.stages[0].weightBytes = 4000;
    costs.stages[0].gradientBytes = 8000;
    const engine::Schedule sharded = engine::parseSchedule("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n").value();
    EXPECT_EQ(pathOf(engine::simulate(sharded, costs).value()).total, (traces::PathTimes{4000, 3030 + 6030, 0}));
}

// Two directions: rank 1 ends its last backward of each stage when rank 0 does, and what the two sum up ends the step.
TEST(CriticalPathOfASimulation, HasNoWaitWhereCopiesOfTheWeightsAreSummed)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    costs.machine.replica = {.latency = kSlot / 2};
    const traces::Trace trace = engine::simulate(made("chimera", 4, 4), costs).value();
    const traces::CriticalPath path = pathOf(trace);
    EXPECT_EQ(path.total.wait, 0);
    EXPECT_EQ(path.total.sum(), traces::stepFigures(trace, traces::Step{0}).value().makespan);
    EXPECT_GE(path.total.compute, 4 * 3 * kSlot); // one micro-batch through all stages and back
}

// F 1 slot, a copy 5 slots: 0F0 [0,1] goes away [1,6], comes back [6,11], 0B0 [11,13]. Two lanes of copies, each in its order.
TEST(CriticalPathOfASimulation, GoesThroughCopiesToTheForwardThatFedThem)
{
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.machine.host = {.latency = 5 * kSlot};
    const engine::Schedule one = engine::parseSchedule("0F0,0OFFLOAD0,0RELOAD0,0B0\n").value();
    EXPECT_EQ(pathOf(engine::simulate(one, costs).value()).total, (traces::PathTimes{3 * kSlot, 10 * kSlot, 0}));
    // 0F1 [1,2] goes away behind the other, [6,11], and is back at 16 for 0B1 [16,18]; only then comes 0RELOAD0 [18,23], and 0B0 [23,25]
    const engine::Schedule two = engine::parseSchedule("0F0,0OFFLOAD0,0F1,0OFFLOAD1,0RELOAD1,0B1,0RELOAD0,0B0\n").value();
    const traces::CriticalPath path = pathOf(engine::simulate(two, costs).value());
    EXPECT_EQ(path.total.sum(), 25 * kSlot);
    EXPECT_EQ(path.total, (traces::PathTimes{5 * kSlot, 20 * kSlot, 0}));
}

TEST(CriticalPathOfASimulation, IsEmptyWhereAStepTakesNoTime)
{
    const traces::CriticalPath path = pathOf(engine::simulate(made("1f1b", 4, 8), slotCosts(4, 0, 0)).value());
    EXPECT_TRUE(path.links.empty());
    EXPECT_EQ(path.total.sum(), 0);
}

} // namespace
