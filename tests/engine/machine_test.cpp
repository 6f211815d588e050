// SPDX-License-Identifier: Apache-2.0
#include "random_case.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/recompute.h"
#include "engine/schedule/shard.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/machine.h"
#include "traces/analysis/critical_path.h"

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

traces::Trace simulated(const engine::Schedule& schedule, const engine::CostTable& costs, int steps = 1)
{
    traces::Expected<traces::Trace> trace = engine::simulate(schedule, costs, {}, steps);
    if (!trace.ok()) throw std::runtime_error(trace.error().message);
    return std::move(trace).value();
}

// What happened, whatever lane it is on.
std::multiset<std::string> eventsOf(const traces::Trace& trace)
{
    std::multiset<std::string> events;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const traces::Lane& lane = trace.lane(traces::LaneId{l});
        for (std::size_t i = 0; i < lane.size(); ++i)
            events.insert(std::to_string(lane.info().rank.value) + " " + std::to_string(static_cast<int>(lane.info().kind)) + " " +
                          toText(lane.action(i)) + " " + std::to_string(lane.begin(i)) + "-" + std::to_string(lane.end(i)));
    }
    return events;
}

std::multiset<std::string> edgesOf(const traces::Trace& trace)
{
    std::multiset<std::string> edges;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (const traces::Edge& edge : trace.edgesOfLane(traces::LaneId{l}))
            edges.insert(trace.sliceName(edge.from) + ">" + trace.sliceName(edge.to) + "@" + std::to_string(edge.ready));
    return edges;
}

TimeNs endOf(const traces::Trace& trace, const std::string& name, int step = 0)
{
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const traces::Lane& lane = trace.lane(traces::LaneId{l});
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (toText(lane.action(i)) == name && lane.step(i).value == step) return lane.end(i);
    }
    ADD_FAILURE() << "no " << name << " in step " << step;
    return -1;
}

traces::StepFigures figuresIn(const traces::Trace& trace, int step = 0) { return traces::stepFigures(trace, traces::Step{step}).value(); }

TimeNs idleBy(const traces::StepFigures& figures, int rank, traces::GapCause cause)
{
    return figures.ranks[static_cast<std::size_t>(rank)].idleByCause[static_cast<std::size_t>(cause)];
}

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

// 4 replicas, 3000 bytes of gradients in buckets of 1000, 1 byte a nanosecond: 2 * 3/4 * 1000 ns + 2 * 3 * 10 ns a bucket. The only
// backward runs from 1000 to 4000; its buckets are there at 2000, 3000 and 4000.
TEST(Machine, ReducesGradientsInBucketsBesideTheBackward)
{
    engine::CostTable costs = slotCosts(1, 1000, 3000);
    costs.stages[0].gradientBytes = 3000;
    costs.stages[0].optimizer = 500;
    costs.machine.replicas = 4;
    costs.machine.replica = {.latency = 10, .bytesPerSecond = 1e9};
    costs.machine.bucketBytes = 1000;
    const traces::Trace trace = simulated(made("gpipe", 1, 1), costs);
    const traces::Lane& collectives = trace.lane(*trace.findLane(Rank{0}, LaneKind::Collective));
    ASSERT_EQ(collectives.size(), 3U);
    EXPECT_EQ(collectives.begin(0), 2000);
    EXPECT_EQ(collectives.end(0), 3560);
    EXPECT_EQ(collectives.begin(1), 3560);
    EXPECT_EQ(collectives.end(2), 6680);
    EXPECT_EQ(endOf(trace, "0OPTIMIZER"), 7180);
    const traces::StepFigures figures = figuresIn(trace);
    EXPECT_EQ(figures.makespan, 7180);
    EXPECT_EQ(idleBy(figures, 0, traces::GapCause::Transfer), 2680); // the tail
    costs.stages[0].optimizer = 0;
    EXPECT_EQ(figuresIn(simulated(made("gpipe", 1, 1), costs)).makespan, 6680);
}

// ZeRO-1 of 4 replicas: a reduce-scatter, a quarter of the update, an all-gather; a quarter of the optimizer's state.
TEST(Machine, DividesTheUpdateAmongReplicasWithZero1)
{
    engine::CostTable costs = slotCosts(1, 1000, 3000);
    costs.stages[0] = {.forward = 1000, .backward = 3000, .optimizer = 400, .weightBytes = 2000, .gradientBytes = 4000, .optimizerBytes = 8000};
    costs.machine.replicas = 4;
    costs.machine.replica = {.latency = 0, .bytesPerSecond = 1e9};
    costs.sharding = engine::Sharding::Zero1;
    const traces::Trace trace = simulated(made("gpipe", 1, 1), costs);
    EXPECT_EQ(endOf(trace, "0REDUCE_GRAD"), 4000 + 3000);
    EXPECT_EQ(endOf(trace, "0OPTIMIZER"), 7000 + 100);
    EXPECT_EQ(endOf(trace, "0UNSHARD"), 7100 + 1500);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Optimizer)->value.back(), 2000);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Gradients)->valueAt(7050), 4000);
    costs.sharding = engine::Sharding::Zero2;
    EXPECT_EQ(simulated(made("gpipe", 1, 1), costs).memorySeries(Rank{0}, traces::MemoryClass::Gradients)->valueAt(7050), 1000);
}

TEST(Machine, GathersWeightsBeforeTheyAreUsed)
{
    const engine::Schedule schedule = engine::parseSchedule("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n").value();
    engine::CostTable costs = slotCosts(1, 1000, 3000);
    costs.stages[0].weightBytes = 4000;
    costs.stages[0].gradientBytes = 8000;
    costs.stages[0].optimizerBytes = 16000;
    costs.machine.replicas = 4;
    costs.machine.replica = {.latency = 10, .bytesPerSecond = 1e9};
    const traces::Trace trace = simulated(schedule, costs);
    EXPECT_EQ(endOf(trace, "0UNSHARD"), 3030);
    EXPECT_EQ(endOf(trace, "0F0"), 4030);
    EXPECT_EQ(endOf(trace, "0REDUCE_GRAD"), 7030 + 6030);
    const traces::MemorySeries* weights = trace.memorySeries(Rank{0}, traces::MemoryClass::Weights);
    EXPECT_EQ(weights->valueAt(0), 4000); // a quarter, and the gather makes it whole
    EXPECT_EQ(weights->value.back(), 1000);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Optimizer)->value.back(), 4000); // whoever holds a part updates it
    EXPECT_EQ(figuresIn(trace).makespan, 13060);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::Transfer), 3030 + 6030);
}

// Two activations of 1000 bytes; the first goes to the host in 1 slot, from its forward's end on, and comes back before its backward.
TEST(Machine, MovesActivationsToTheHostAndBack)
{
    const engine::Schedule schedule = engine::parseSchedule("0F0,0OFFLOAD0,0F1,0B1,0RELOAD0,0B0\n").value();
    engine::CostTable costs = slotCosts(1, 2 * kSlot, kSlot);
    costs.stages[0].activationBytes = 1000;
    costs.machine.host = {.latency = 0, .bytesPerSecond = 1e6};
    const traces::Trace trace = simulated(schedule, costs);
    EXPECT_EQ(endOf(trace, "0OFFLOAD0"), 3 * kSlot);
    EXPECT_EQ(endOf(trace, "0RELOAD0"), 6 * kSlot); // from 5, where the rank comes to it
    EXPECT_EQ(endOf(trace, "0B0"), 7 * kSlot);
    const traces::MemorySeries* held = trace.memorySeries(Rank{0}, traces::MemoryClass::Activations);
    EXPECT_EQ(held->valueAt(2 * kSlot), 2000);
    EXPECT_EQ(held->valueAt(3 * kSlot), 1000);
    EXPECT_EQ(held->valueAt(5 * kSlot), 1000); // the one goes as the other comes
    EXPECT_EQ(held->value.back(), 0);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::Transfer), kSlot);
}

// What a stage keeps that computes its activations again is its input; the rest is there from RECOMPUTE to B.
TEST(Machine, KeepsTheInputAloneOfWhatIsComputedAgain)
{
    const engine::Schedule schedule = engine::parseSchedule("0F0,0F1,0RECOMPUTE0,0B0,0RECOMPUTE1,0B1\n").value();
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.stages[0].activationBytes = 1000;
    costs.stages[0].inputBytes = 100;
    const traces::Trace trace = simulated(schedule, costs);
    EXPECT_EQ(figuresIn(trace).makespan, 8 * kSlot);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Activations)->valueAt(kSlot), 200);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Recompute)->valueAt(2 * kSlot), 1000);
    EXPECT_EQ(figuresIn(trace).ranks[0].peakMemory, 1200);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Recompute)->value.back(), 0);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Activations)->value.back(), 0);
}

// Only one of the two is: the other keeps its own.
TEST(Machine, KeepsWhatIsNotComputedAgain)
{
    const engine::Schedule schedule = engine::parseSchedule("0F0,0F1,0RECOMPUTE0,0B0,0B1\n").value();
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.stages[0].activationBytes = 1000;
    costs.stages[0].inputBytes = 100;
    const traces::Trace trace = simulated(schedule, costs);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Activations)->valueAt(kSlot), 1100);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Activations)->valueAt(5 * kSlot), 1000);
    EXPECT_EQ(figuresIn(trace).ranks[0].peakMemory, 2100);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Recompute)->value.back(), 0);
    EXPECT_EQ(trace.memorySeries(Rank{0}, traces::MemoryClass::Activations)->value.back(), 0);
}

// Inference: while a forward runs it keeps what it makes, and nothing after it.
TEST(Machine, LetsActivationsGoWhereNothingComesBack)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.activationBytes = 1000;
    const traces::Trace plain = simulated(made("forward-only", 2, 4), costs);
    costs.stages[0].outputBytes = 8; // not plain any more
    for (const traces::Trace& trace : {plain, simulated(made("forward-only", 2, 4), costs)}) {
        const traces::MemorySeries* held = trace.memorySeries(Rank{1}, traces::MemoryClass::Activations);
        EXPECT_EQ(*std::max_element(held->value.begin(), held->value.end()), 1000);
        EXPECT_EQ(held->value.back(), 0);
        EXPECT_EQ(figuresIn(trace).ranks[1].peakActivations, 1);
    }
}

// The way to the partner is the one that hand-offs of the same two ranks take: with p=2 OFFLOAD and SEND queue on it.
TEST(Machine, SendsToThePartnerOverTheWayThatIsThere)
{
    const engine::Schedule schedule = engine::parseSchedule("# offload to partner\n0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n1F0,1F1,1B0,1B1\n").value();
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.inside = {.latency = 0, .bytesPerSecond = 1e9};
    costs.transfer = kSlot;
    for (engine::StageCosts& stage : costs.stages) stage.activationBytes = stage.outputBytes = kSlot; // one slot each
    EXPECT_EQ(endOf(simulated(schedule, costs), "0OFFLOAD0"), 2 * kSlot); // beside the hand-off
    costs.machine.sharedLinks = true;
    EXPECT_EQ(endOf(simulated(schedule, costs), "0OFFLOAD0"), 3 * kSlot); // behind it
}

// p=2: 0F0 is there at 1 and used at once; 0F1 is made at 2 and 1F0 keeps rank 1 until 4, so it lies in a buffer for two slots.
TEST(Machine, HoldsInBuffersWhatArrivedAndIsNotUsedYet)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.stages[1].forward = 3 * kSlot;
    for (engine::StageCosts& stage : costs.stages) stage.outputBytes = 64;
    const traces::Trace trace = simulated(made("gpipe", 2, 2), costs);
    const traces::MemorySeries* buffers = trace.memorySeries(Rank{1}, traces::MemoryClass::Buffers);
    ASSERT_NE(buffers, nullptr);
    EXPECT_EQ(buffers->valueAt(kSlot), 0);
    EXPECT_EQ(buffers->valueAt(2 * kSlot), 64);
    EXPECT_EQ(buffers->valueAt(4 * kSlot), 0);
}

// Stage r of a full pipeline has p - r micro-batches in flight, each with the weights of its forward (arXiv 1806.03377 sec. 3.3);
// double-buffered there are two versions everywhere (arXiv 2006.09503 sec. 3.1).
TEST(Machine, KeepsTheWeightsOfMicroBatchesInFlight)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.weightBytes = 100;
    for (const auto& [name, versions] : {std::pair{"pipedream", std::vector<int>{4, 3, 2, 1}}, {"pipedream-2bw", {2, 2, 2, 2}}}) {
        const traces::Trace trace = simulated(made(name, 4, 16), costs);
        for (int r = 0; r < 4; ++r) {
            EXPECT_EQ(trace.memorySeries(Rank{r}, traces::MemoryClass::Weights)->value.back(), 100);
            const traces::MemorySeries* kept = trace.memorySeries(Rank{r}, traces::MemoryClass::Versions);
            const traces::Bytes most = kept == nullptr ? 0 : *std::max_element(kept->value.begin(), kept->value.end());
            EXPECT_EQ(most, 100 * (versions[static_cast<std::size_t>(r)] - 1)) << name << " rank " << r;
        }
    }
}

// Two ranks that both send before they receive: buffered that is fine, and where a send waits for its receipt it is for ever.
TEST(Machine, WaitsForTheOtherSideInARendezvous)
{
    const std::string order = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
    const engine::Schedule schedule = engine::parseSchedule(order).value();
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    EXPECT_EQ(figuresOf(schedule, costs).makespan, 6 * kSlot);
    costs.machine.send = SendMode::Rendezvous;
    const traces::Expected<traces::Trace> stuck = engine::simulate(schedule, costs);
    ASSERT_FALSE(stuck.ok());
    EXPECT_THAT(stuck.error().message, ::testing::HasSubstr("rank 0 at position 3 (0SEND_F1) waits for"));
    const engine::PartialSimulation partial = engine::simulateUntilStuck(schedule, costs).value();
    ASSERT_EQ(partial.deadlock.size(), 2U);
    EXPECT_EQ(partial.deadlock[1].action, "1SEND_B0");
    EXPECT_EQ(endOf(partial.trace, "1B0"), 3 * kSlot); // as far as it came
    EXPECT_EQ(partial.trace.steps().size(), 1U);

    // received in another order it runs: 0F1 [1,2] waits with its send until rank 1 takes it at 3
    const engine::Schedule meets = engine::parseSchedule("0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
                                                         "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                                       .value();
    const traces::Trace trace = simulated(meets, costs);
    EXPECT_EQ(endOf(trace, "0F1"), 2 * kSlot);
    EXPECT_EQ(endOf(trace, "1F1"), 4 * kSlot);
    EXPECT_EQ(figuresIn(trace).makespan, 6 * kSlot);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::Unexplained), 0);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::WaitForStage), 2 * kSlot); // for 1B0 from 2 to 3, for 1B1 from 4 to 5
}

// Megatron-LM's fused pairs: each rank is in its send and its receipt at once, so 1F1B takes the time that it takes with buffers.
TEST(Machine, WaitsForTransfersThatArePostedTogetherAsOne)
{
    engine::CostTable costs = slotCosts(2, kSlot, 2 * kSlot);
    costs.machine.send = SendMode::Rendezvous;
    const engine::Schedule fused = engine::lowerCommunication(made("1f1b", 2, 3), engine::LoweringRule::Megatron).value();
    const traces::Trace trace = simulated(fused, costs);
    // by hand: rank 1 is in (1SEND_B0;1RECV_F1) from 4 on, rank 0 in (0SEND_F1;0RECV_B0) from 2 on
    EXPECT_EQ(endOf(trace, "0B0"), 6 * kSlot);
    EXPECT_EQ(endOf(trace, "1B1"), 7 * kSlot);
    EXPECT_EQ(endOf(trace, "0B2"), 12 * kSlot);
    for (int p = 2; p <= 5; ++p)
        for (const int chunks : {1, 2}) {
            const engine::Schedule plain = made(chunks == 1 ? "1f1b" : "interleaved", p, 2 * p, chunks);
            for (const engine::LoweringRule rule : engine::kLoweringRules) {
                const engine::Schedule lowered = engine::lowerCommunication(plain, rule).value();
                engine::CostTable table = slotCosts(plain.stages(), kSlot, 2 * kSlot, kSlot / 2);
                table.machine.send = SendMode::Rendezvous;
                EXPECT_EQ(engine::simulate(lowered, table).ok(), engine::validate(lowered, {.send = SendMode::Rendezvous}).legal())
                    << p << " " << chunks << " " << engine::loweringRuleName(rule);
            }
        }
}

TEST(Machine, RefusesAChannelWhoseMessagesAreTakenInAnotherOrder)
{
    const engine::Schedule schedule =
        engine::parseSchedule("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1\n").value();
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    EXPECT_TRUE(engine::simulate(schedule, costs).ok());
    costs.machine.send = SendMode::Channel;
    EXPECT_THAT(engine::simulate(schedule, costs).error().message, ::testing::HasSubstr("1RECV_F1"));
    // as far as it comes: rank 1 never has what stands behind the message that it does not want first
    const engine::PartialSimulation stuck = engine::simulateUntilStuck(schedule, costs).value();
    EXPECT_FALSE(stuck.deadlock.empty());
    EXPECT_EQ(stuck.trace.lane(traces::LaneId{0U}).size(), 2U);
    EXPECT_EQ(stuck.trace.lane(traces::LaneId{1U}).size(), 0U);
}

TEST(Machine, LetsAChannelPassInItsOrderInEveryStep)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    const engine::Schedule schedule = engine::lowerCommunication(made("1f1b", 4, 6)).value();
    const TimeNs buffered = simulated(schedule, costs, 3).extent().end;
    costs.machine.send = SendMode::Channel;
    EXPECT_EQ(simulated(schedule, costs, 3).extent().end, buffered);
}

// Sums of what is idle, memory that comes and goes, and nothing that ends before it can: for random machines.
TEST(Machine, KeepsItsBooksOnRandomMachines)
{
    for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        std::mt19937 random(seed);
        const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        const int p = drawn.schedule.ranks;
        const TimeNs plain = figuresOf(drawn.schedule, drawn.costs).makespan;
        for (engine::StageCosts& stage : drawn.costs.stages) {
            stage.optimizer = among(0, 300);
            stage.weightBytes = among(1, 3000);
            stage.gradientBytes = stage.weightBytes;
            stage.optimizerBytes = 2 * stage.weightBytes;
            stage.outputBytes = among(0, 400);
            stage.inputBytes = 10;
        }
        engine::MachineModel& machine = drawn.costs.machine;
        machine.ranksPerNode = among(0, 3);
        machine.between = {.latency = drawn.costs.transfer + among(0, 500), .bytesPerSecond = 1e9};
        machine.transfers = static_cast<TransferPlace>(among(0, 1));
        machine.sharedLinks = among(0, 1) == 1;
        machine.replicas = among(1, 4);
        machine.replica = {.latency = 7, .bytesPerSecond = 1e9};
        machine.bucketBytes = 700;
        machine.barrier = among(0, 1) == 1;
        for (int r = 0; r < p; ++r) machine.rankScale.push_back(1 + 0.25 * among(0, 4));
        if (among(0, 1) == 1)
            for (int r = 0; r < p; ++r) machine.lateStart.push_back(among(0, 900));
        machine.host = {.latency = among(0, 300), .bytesPerSecond = 1e9};
        drawn.costs.sharding = static_cast<engine::Sharding>(among(0, 3));
        if (drawn.schedule.asynchronous() || drawn.schedule.inference()) drawn.costs.sharding = static_cast<engine::Sharding>(among(0, 1));
        if (among(0, 1) == 1) drawn.schedule = engine::shard(drawn.schedule, drawn.costs.sharding);
        if (among(0, 2) == 0 && !engine::hasOffload(drawn.schedule) && !drawn.schedule.inference())
            drawn.schedule = engine::withRecompute(drawn.schedule);
        if (among(0, 1) == 1) machine.send = engine::SendMode::Channel;
        ASSERT_TRUE(engine::validate(drawn.schedule, {.send = machine.send}).legal());
        const traces::Trace trace = simulated(drawn.schedule, drawn.costs, 3);
        ASSERT_EQ(trace.steps().size(), 3U);
        for (int step = 0; step < 3; ++step) {
            const traces::StepFigures figures = figuresIn(trace, step);
            if (step == 0) {
                EXPECT_GE(trace.steps().front().span.end, plain);
            }
            for (const traces::RankFigures& rank : figures.ranks) {
                EXPECT_EQ(rank.busy + rank.idle, figures.makespan);
                TimeNs causes = 0;
                for (const TimeNs part : rank.idleByCause) causes += part;
                EXPECT_EQ(causes, rank.idle);
            }
            const traces::CriticalPath path = traces::criticalPath(trace, traces::Step{step}).value();
            EXPECT_EQ(path.total.sum(), figures.makespan);
            if (machine.lateStart.empty()) { // whatever else a rank waits for is some action
                EXPECT_EQ(path.total.wait, 0) << "step " << step;
            }
        }
        for (const traces::MemorySeries& series : trace.memory()) {
            EXPECT_GE(*std::min_element(series.value.begin(), series.value.end()), 0) << memoryClassText(series.memory);
            const bool stays = series.memory == traces::MemoryClass::Weights || series.memory == traces::MemoryClass::Optimizer ||
                               (series.memory == traces::MemoryClass::Versions && drawn.schedule.name == "pipedream-2bw");
            if (!stays) {
                EXPECT_EQ(series.value.back(), 0) << memoryClassText(series.memory);
            }
        }
    }
}

// The same where hand-offs keep both ranks, and where a send waits for its receipt.
TEST(Machine, ExplainsEveryWaitOfRanksThatMeet)
{
    int ran = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        engine::MachineModel& machine = drawn.costs.machine;
        machine.transfers = seed % 3 == 0 ? TransferPlace::Nothing : TransferPlace::Ranks;
        machine.send = seed % 2 == 0 ? SendMode::Rendezvous : SendMode::Buffered;
        machine.replicas = 1 + static_cast<int>(seed % 2);
        machine.replica = {.latency = 70, .bytesPerSecond = 1e9};
        const traces::Expected<traces::Trace> trace = engine::simulate(drawn.schedule, drawn.costs, {}, 2);
        if (!trace.ok()) continue; // the order of the transfers hangs
        ++ran;
        for (int step = 0; step < 2; ++step) {
            const traces::CriticalPath path = traces::criticalPath(trace.value(), traces::Step{step}).value();
            EXPECT_EQ(path.total.sum(), figuresIn(trace.value(), step).makespan);
            EXPECT_EQ(path.total.wait, 0) << "step " << step;
        }
    }
    EXPECT_GT(ran, 100);
}

// With fixed orders and ways that nobody shares.
TEST(Machine, NeverEndsEarlierWithMoreLatency)
{
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        for (engine::StageCosts& stage : drawn.costs.stages) stage.outputBytes = 50;
        engine::MachineModel& machine = drawn.costs.machine;
        machine.ranksPerNode = 1 + static_cast<int>(seed % 3);
        machine.transfers = static_cast<TransferPlace>(seed % 3);
        machine.send = seed % 2 == 0 ? SendMode::Buffered : SendMode::Channel;
        const TimeNs before = simulated(drawn.schedule, drawn.costs).extent().end;
        machine.between.latency += 137;
        drawn.costs.inside.latency += 31;
        drawn.costs.transfer += 31;
        EXPECT_GE(simulated(drawn.schedule, drawn.costs).extent().end, before);
    }
}

} // namespace
