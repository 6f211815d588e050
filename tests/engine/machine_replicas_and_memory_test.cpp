// SPDX-License-Identifier: Apache-2.0
#include "machine_trace.h"
#include "random_case.h"

#include "engine/schedule/offload.h"
#include "engine/schedule/recompute.h"
#include "engine/schedule/shard.h"
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

} // namespace
