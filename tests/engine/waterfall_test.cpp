// SPDX-License-Identifier: Apache-2.0
//
// The bars of a step's waterfall against formulas and published makespans.
#include "random_case.h"

#include "engine/explain/trace_model.h"
#include "engine/explain/waterfall.h"
#include "engine/plan/plan.h"

#include <numeric>
#include <random>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::WaterfallPart;

namespace {

engine::Waterfall simulatedBars(const engine::Schedule& schedule, const engine::CostTable& costs)
{
    return engine::waterfallOf(schedule, costs).value();
}

std::array<double, engine::kWaterfallPartCount> slots(const engine::Waterfall& waterfall)
{
    std::array<double, engine::kWaterfallPartCount> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(waterfall.bars[i]) / static_cast<double>(kSlot);
    return all;
}

// m(F+B) of work, (p-1)(F+B) of structure; with c = 0.5 the published 41 of 1F1B and 36 of GPipe (p=4, m=8).
TEST(Waterfall, SeparatesTheOrderFromItsTransfers)
{
    const engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    EXPECT_EQ(slots(simulatedBars(made("1f1b", 4, 8), costs)), (std::array<double, 5>{24, 9, 0, 8, 0}));
    EXPECT_EQ(slots(simulatedBars(made("gpipe", 4, 8), costs)), (std::array<double, 5>{24, 9, 0, 3, 0}));
}

// The preset "imbalanced": stages 1, 1, 1.5, 0.5 take 42 in 1F1B and 43.5 in GPipe, without a transfer.
TEST(Waterfall, TellsWhatUnequalStagesCost)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    costs.stages[2].forward = 3 * kSlot / 2;
    costs.stages[2].backward = 3 * kSlot;
    costs.stages[3].forward = kSlot / 2;
    costs.stages[3].backward = kSlot;
    EXPECT_EQ(slots(simulatedBars(made("1f1b", 4, 8), costs)), (std::array<double, 5>{24, 9, 9, 0, 0}));
    EXPECT_EQ(slots(simulatedBars(made("gpipe", 4, 8), costs)), (std::array<double, 5>{24, 9, 10.5, 0, 0}));
}

// A rank that takes 1.5 times as long for everything is an imbalance like any other; its neighbours cannot work ahead for ever.
TEST(Waterfall, CountsASlowDeviceAsImbalance)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    costs.machine.rankScale = {1, 1, 1, 1.5};
    const engine::Waterfall waterfall = simulatedBars(made("1f1b", 4, 8), costs);
    EXPECT_EQ(slots(waterfall), (std::array<double, 5>{27, 10.125, 3 * 1 + 8 * 4.5 + 3 * 2 - 37.125, 0, 0}))
        << "8 (F+B) of a rank, in the mean; the slow rank's work, and the way there and back";
}

// Whatever the network is like, all that it costs is one bar, and what begins late is another.
TEST(Waterfall, CountsEveryKindOfCommunicationAsOne)
{
    const engine::Schedule schedule = made("1f1b", 4, 8);
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    costs.inside.latency = kSlot / 2;
    costs.machine.ranksPerNode = 2;
    costs.machine.between.latency = kSlot;
    costs.machine.transfers = engine::TransferPlace::Ranks;
    costs.machine.replicas = 2;
    costs.machine.replica.latency = kSlot;
    for (engine::StageCosts& stage : costs.stages) stage.gradientBytes = 1000;
    const engine::Waterfall waterfall = simulatedBars(schedule, costs);
    EXPECT_EQ(slots(waterfall)[0], 24);
    EXPECT_EQ(slots(waterfall)[1], 9);
    EXPECT_EQ(slots(waterfall)[2], 0);
    EXPECT_GT(slots(waterfall)[3], 8);
    EXPECT_EQ(slots(waterfall)[4], 0);
    costs.machine.lateStart = {0, 0, 0, 50 * kSlot};
    EXPECT_EQ(simulatedBars(schedule, costs).bar(WaterfallPart::Communication), waterfall.bar(WaterfallPart::Communication));
    EXPECT_GT(simulatedBars(schedule, costs).bar(WaterfallPart::Overhead), 0);
}

TEST(Waterfall, ClosesOnWhatWasMeasured)
{
    const engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    const engine::Waterfall waterfall = engine::waterfallOf(made("1f1b", 4, 8), costs, 45 * kSlot).value();
    EXPECT_EQ(slots(waterfall), (std::array<double, 5>{24, 9, 0, 8, 4}));
    EXPECT_TRUE(waterfall.measured);
    EXPECT_EQ(waterfall.total, 45 * kSlot);
}

TEST(Waterfall, SumsUpToTheStepForEverySchedule)
{
    std::mt19937 random(3);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 100; ++round) {
        const engine::Schedule schedule = drawSchedule(random, static_cast<std::size_t>(round), 6, 12);
        SCOPED_TRACE(schedule.name + " in round " + std::to_string(round));
        engine::CostTable costs = slotCosts(schedule.stages(), 0, 0, among(0, 300));
        costs.jitter = 0.1;
        if (among(0, 1) == 1)
            for (int r = 0; r < schedule.ranks; ++r) costs.machine.rankScale.push_back(1 + 0.1 * among(0, 5));
        for (engine::StageCosts& stage : costs.stages) {
            stage.forward = among(100, 1000);
            stage.backward = among(200, 2000);
            stage.inputGrad = stage.backward / 3;
            stage.weightGrad = stage.backward - stage.inputGrad;
            stage.overlap = stage.forward + stage.backward;
        }
        const engine::Waterfall waterfall = simulatedBars(schedule, costs);
        EXPECT_EQ(std::accumulate(waterfall.bars.begin(), waterfall.bars.end(), traces::TimeNs{0}), waterfall.total);
        EXPECT_EQ(waterfall.total, figuresOf(schedule, costs).makespan);
        EXPECT_GE(waterfall.bar(WaterfallPart::Structure), 0);
        EXPECT_GE(waterfall.bar(WaterfallPart::Communication), 0) << "no order gets faster by slower links";
        EXPECT_FALSE(waterfall.measured);
    }
}

// From a trace alone, without its plan, the same bars come out: order, stage times and hand-offs are all in it.
TEST(Waterfall, OfATraceNeedsNoPlan)
{
    for (const char* name : {"1f1b", "zb-h1", "interleaved", "dualpipe", "seq1f1b", "chimera"}) {
        SCOPED_TRACE(name);
        const engine::ScheduleFamily& family = *engine::findFamily(name);
        engine::ScheduleRequest request{.name = name, .ranks = 4, .chunks = family.minChunks, .microbatches = 8};
        if (family.cutsSequences) request.slices = 2;
        const engine::Schedule schedule = engine::generate(request).value();
        engine::CostTable costs = slotCosts(schedule.stages(), kSlot, 2 * kSlot, kSlot / 4);
        costs.stages[1].forward = 3 * kSlot / 2;
        for (engine::StageCosts& stage : costs.stages) stage.overlap = (stage.forward + stage.backward) / 4 * 3;
        const traces::Trace trace = engine::simulate(schedule, costs).value();
        EXPECT_EQ(engine::modelOf(trace, traces::Step{0}).value().schedule, schedule);
        EXPECT_EQ(engine::waterfallOf(trace, traces::Step{0}).value().bars, simulatedBars(schedule, costs).bars);
    }
}

TEST(Waterfall, SaysWhyAStepHasNone)
{
    traces::Trace trace = engine::simulate(made("1f1b", 2, 2), slotCosts(2, kSlot, kSlot)).value();
    EXPECT_FALSE(engine::waterfallOf(trace, traces::Step{4}).ok());
    traces::Trace broken;
    const traces::LaneId lane = broken.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    broken.append(lane, {.begin = 0, .end = 5, .action = traces::backward(traces::Stage{0}, traces::MicroBatch{0})});
    EXPECT_FALSE(engine::waterfallOf(broken, traces::Step{0}).ok()) << "a backward without its forward";
}

} // namespace
