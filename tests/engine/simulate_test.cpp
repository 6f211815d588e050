// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/simulate/jitter.h"
#include "traces/store/bounds.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

struct UnitRow {
    const char* schedule;
    int ranks;
    int microbatches;
    int chunks;
    int makespanOneToOne; // slots, F = B = 1
    int makespanOneToTwo; // slots, F = 1, B = 2
    double bubble;
    std::vector<int> peakChunks; // per rank; empty: not stated
};

// Whole-number table of known schedules, from the papers' formulas and an independent event simulation.
const std::vector<UnitRow>& unitRows()
{
    static const std::vector<UnitRow> rows{
        {"naive", 4, 1, 1, 8, 12, .7500, {1, 1, 1, 1}},
        {"gpipe", 4, 5, 1, 16, 24, .3750, {5, 5, 5, 5}},
        {"1f1b", 4, 5, 1, 16, 24, .3750, {4, 3, 2, 1}},
        {"gpipe", 4, 8, 1, 22, 33, .2727, {8, 8, 8, 8}},
        {"1f1b", 4, 8, 1, 22, 33, .2727, {4, 3, 2, 1}},
        {"1f1b", 8, 24, 1, 62, 93, .2258, {8, 7, 6, 5, 4, 3, 2, 1}},
        {"1f1b", 8, 40, 1, 94, 141, .1489, {8, 7, 6, 5, 4, 3, 2, 1}},
        {"1f1b", 8, 64, 1, 142, 213, .0986, {8, 7, 6, 5, 4, 3, 2, 1}},
        {"interleaved", 4, 8, 2, 38, 57, .1579, {11, 9, 7, 5}},
        {"interleaved", 2, 4, 2, 18, 27, .1111, {5, 3}},
    };
    return rows;
}

TEST(Simulate, GivesTheWholeNumbersOfKnownSchedules)
{
    for (const UnitRow& row : unitRows()) {
        SCOPED_TRACE(std::string(row.schedule) + " p=" + std::to_string(row.ranks) + " m=" + std::to_string(row.microbatches));
        const engine::Schedule schedule = made(row.schedule, row.ranks, row.microbatches, row.chunks);
        const traces::StepFigures equal = figuresOf(schedule, slotCosts(schedule.stages(), kSlot, kSlot));
        const traces::StepFigures twice = figuresOf(schedule, slotCosts(schedule.stages(), kSlot, 2 * kSlot));
        EXPECT_EQ(equal.makespan, row.makespanOneToOne * kSlot);
        EXPECT_EQ(twice.makespan, row.makespanOneToTwo * kSlot);
        EXPECT_NEAR(equal.bubbleMakespan, row.bubble, 5e-5);
        EXPECT_NEAR(twice.bubbleMakespan, row.bubble, 5e-5);
        for (std::size_t r = 0; r < row.peakChunks.size(); ++r)
            EXPECT_DOUBLE_EQ(twice.ranks[r].peakActivations, static_cast<double>(row.peakChunks[r]) / row.chunks);
    }
}

TEST(Simulate, TellsTheThreeBubblesApart)
{
    // 8 stages, 70 micro-batches: 7/77 of the time, (p-1)/m = 10 % of the ideal time
    const traces::StepFigures figures = figuresOf(made("1f1b", 8, 70), slotCosts(8, kSlot, 2 * kSlot));
    EXPECT_DOUBLE_EQ(figures.bubbleMakespan, 7.0 / 77);
    EXPECT_NEAR(figures.bubbleOverIdeal, 0.1, 1e-12);
    const traces::StepFigures few = figuresOf(made("1f1b", 8, 8), slotCosts(8, kSlot, 2 * kSlot));
    EXPECT_DOUBLE_EQ(few.bubbleMakespan, 7.0 / 15);
    // below 10 % with 8 stages: 64 micro-batches, 63 is exactly 10 %
    EXPECT_DOUBLE_EQ(figuresOf(made("1f1b", 8, 63), slotCosts(8, kSlot, 2 * kSlot)).bubbleMakespan, 0.1);
    EXPECT_LT(figuresOf(made("1f1b", 8, 64), slotCosts(8, kSlot, 2 * kSlot)).bubbleMakespan, 0.1);
}

// Stage times 1, 1, 1.5, 0.5, p = 4, m = 8: 42 for 1F1B and 43.5 for GPipe against 33 when balanced.
TEST(Simulate, LetsTheSlowestStageSetThePace)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    const double scale[] = {1, 1, 1.5, 0.5};
    for (std::size_t s = 0; s < 4; ++s) {
        costs.stages[s].forward = static_cast<traces::TimeNs>(kSlot * scale[s]);
        costs.stages[s].backward = 2 * costs.stages[s].forward;
    }
    EXPECT_EQ(figuresOf(made("1f1b", 4, 8), costs).makespan, 42 * kSlot);
    EXPECT_EQ(figuresOf(made("gpipe", 4, 8), costs).makespan, 43 * kSlot + kSlot / 2);
}

// Latency half a slot: 1F1B pays in its steady state, GPipe only for filling and draining.
TEST(Simulate, MakesOneFOneBSlowerThanGPipeWhereTransfersTakeTime)
{
    const engine::CostTable four = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    EXPECT_EQ(figuresOf(made("1f1b", 4, 8), four).makespan, 41 * kSlot);
    EXPECT_EQ(figuresOf(made("gpipe", 4, 8), four).makespan, 36 * kSlot);
    const engine::CostTable eight = slotCosts(8, kSlot, 2 * kSlot, kSlot / 2);
    EXPECT_EQ(figuresOf(made("1f1b", 8, 32), eight).makespan, 151 * kSlot);
    EXPECT_EQ(figuresOf(made("gpipe", 8, 32), eight).makespan, 124 * kSlot);
    const engine::CostTable three = slotCosts(3, kSlot, 2 * kSlot, kSlot / 2);
    EXPECT_EQ(figuresOf(made("1f1b", 3, 7), three).makespan, 33 * kSlot);
    EXPECT_EQ(figuresOf(made("gpipe", 3, 7), three).makespan, 29 * kSlot);
}

// The strict values of the interleaved column (wrap-around edge for every micro-batch), v = 3 or 4.
TEST(Simulate, GivesTheStrictRatesOfInterleaved)
{
    struct Row {
        int microbatches, chunks;
        double forward, backward, transfer, bubble;
    };
    const Row rows[] = {{24, 3, 18.522, 18.086 + 9.337, .601, .1090},  {32, 3, 18.513, 18.086 + 9.331, .626, .0847},
                        {64, 3, 18.546, 18.097 + 9.321, .762, .0461},  {24, 4, 29.718, 29.444 + 19.927, .527, .0827},
                        {32, 4, 29.802, 29.428 + 19.530, .577, .0644}, {64, 4, 29.935, 29.621 + 19.388, .535, .0328}};
    const auto ns = [](double ms) { return static_cast<traces::TimeNs>(std::llround(ms * 1e6)); };
    for (const Row& row : rows) {
        const engine::CostTable costs =
            slotCosts(8 * row.chunks, ns(row.forward / row.chunks), ns(row.backward / row.chunks), ns(row.transfer));
        EXPECT_NEAR(figuresOf(made("interleaved", 8, row.microbatches, row.chunks), costs).bubbleMakespan, row.bubble, 5e-5);
    }
}

TEST(Simulate, SumsTheCausesToTheIdleTime)
{
    const traces::StepFigures figures = figuresOf(made("1f1b", 4, 8), slotCosts(4, kSlot, 2 * kSlot, kSlot / 2));
    for (const traces::RankFigures& rank : figures.ranks) {
        EXPECT_EQ(std::accumulate(rank.idleByCause.begin(), rank.idleByCause.end(), traces::TimeNs{0}), rank.idle);
        EXPECT_EQ(rank.idle + rank.busy, figures.makespan);
        EXPECT_EQ(rank.idleByCause[static_cast<std::size_t>(traces::GapCause::Unexplained)], 0);
    }
    EXPECT_GT(figures.ranks[0].idleByCause[static_cast<std::size_t>(traces::GapCause::Transfer)], 0);
}

TEST(Simulate, HoldsActivationsFromForwardToBackward)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) {
        stage.activationBytes = 1000;
        stage.weightBytes = 500;
        stage.gradientBytes = 500;
        stage.optimizerBytes = 1000;
    }
    const traces::Trace trace = engine::simulate(made("1f1b", 4, 8), costs).value();
    for (int r = 0; r < 4; ++r) {
        const traces::MemorySeries* held = trace.memorySeries(traces::Rank{r}, traces::MemoryClass::Activations);
        ASSERT_NE(held, nullptr);
        EXPECT_EQ(*std::max_element(held->value.begin(), held->value.end()), 1000 * (4 - r));
        EXPECT_EQ(held->value.back(), 0);
        EXPECT_EQ(trace.memorySeries(traces::Rank{r}, traces::MemoryClass::Weights)->value.back(), 500);
    }
    const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();
    EXPECT_EQ(figures.ranks[0].peakMemory, 4 * 1000 + 500 + 500 + 1000);
}

TEST(Simulate, FreesBetweenInputAndWeightGradientWhatOnlyTheFirstNeeds)
{
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.stages[0].activationBytes = 1000;
    costs.stages[0].wgradBytes = 600;
    const engine::Schedule split = engine::parseSchedule("0F0,0I0,0W0\n").value();
    const traces::Trace trace = engine::simulate(split, costs).value();
    const traces::MemorySeries* held = trace.memorySeries(traces::Rank{0}, traces::MemoryClass::Activations);
    EXPECT_EQ(held->valueAt(0), 1000);
    EXPECT_EQ(held->valueAt(2 * kSlot), 600);
    EXPECT_EQ(held->valueAt(3 * kSlot), 0);
}

TEST(Simulate, DrawsTransfersOnLanesOfTheirOwnWithoutOverlap)
{
    // a transfer of three slots while a forward takes one: up to three are under way
    const traces::Trace trace = engine::simulate(made("gpipe", 2, 4), slotCosts(2, kSlot, kSlot, 3 * kSlot)).value();
    EXPECT_TRUE(trace.findLane(traces::Rank{0}, traces::LaneKind::Transfer, 2).has_value());
    EXPECT_FALSE(trace.findLane(traces::Rank{0}, traces::LaneKind::Transfer, 3).has_value());
    const traces::LaneId first = *trace.findLane(traces::Rank{0}, traces::LaneKind::Transfer, 0);
    EXPECT_EQ(trace.sliceName({first, 0}), "0SEND_F0");
    EXPECT_EQ(trace.lane(first).begin(0), kSlot);
    EXPECT_EQ(trace.lane(first).end(0), 4 * kSlot);
}

TEST(Simulate, LinksEveryForwardToTheOneBefore)
{
    const traces::Trace trace = engine::simulate(made("1f1b", 3, 2), slotCosts(3, kSlot, kSlot, kSlot)).value();
    const std::vector<traces::Edge> edges = trace.edgesInto({traces::LaneId{1}, 0});
    ASSERT_EQ(edges.size(), 1U);
    EXPECT_EQ(trace.sliceName(edges[0].from), "0F0");
    EXPECT_EQ(edges[0].ready, 2 * kSlot);
}

TEST(Simulate, StepsTheOptimizerWithoutABarrier)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.optimizer = kSlot;
    const traces::Trace trace = engine::simulate(made("1f1b", 2, 2), costs).value();
    const traces::Lane& last = trace.lane(traces::LaneId{1});
    EXPECT_EQ(last.action(last.size() - 1).kind(), traces::ActionKind::Optimizer);
    EXPECT_EQ(last.end(last.size() - 1), 6 * kSlot); // F0 B0 F1 B1 from slot 1, then the optimizer; rank 0 ends at 7
    EXPECT_EQ(trace.extent().end, 7 * kSlot);
}

TEST(Simulate, StepsTheOptimizerWhereTheScheduleSaysSo)
{
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.stages[0].optimizer = 5 * kSlot;
    const engine::Schedule schedule = engine::parseSchedule("0F0,0B0,0OPTIMIZER,0F1,0B1\n").value();
    const traces::Trace trace = engine::simulate(schedule, costs).value();
    const traces::Lane& lane = trace.lane(traces::LaneId{0});
    ASSERT_EQ(lane.size(), 5U); // none is added
    EXPECT_EQ(lane.action(2).kind(), engine::ActionKind::Optimizer);
    EXPECT_EQ(lane.begin(2), 3 * kSlot);
    EXPECT_EQ(lane.end(2), 8 * kSlot);
}

TEST(Simulate, RefusesActionsThatNoCostIsKnownFor)
{
    const traces::Expected<traces::Trace> trace =
        engine::simulate(engine::parseSchedule("0F0,0B0,0ALL_REDUCE\n").value(), slotCosts(1, kSlot, kSlot));
    ASSERT_FALSE(trace.ok());
    EXPECT_THAT(trace.error().message, ::testing::HasSubstr("no cost is known for"));
}

TEST(Simulate, NamesTheWaitingRanksOfADeadlock)
{
    const engine::Schedule stuck = engine::parseSchedule("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n").value();
    traces::Expected<traces::Trace> trace = engine::simulate(stuck, slotCosts(2, kSlot, kSlot));
    ASSERT_FALSE(trace.ok());
    EXPECT_THAT(trace.error().message, ::testing::HasSubstr("rank 0 at position 1 (0B0) waits for 1B0"));
}

TEST(Simulate, StopsWhenAnotherThreadAsks)
{
    std::stop_source stop;
    const engine::Schedule schedule = made("1f1b", 4, 8);
    const engine::CostTable costs = slotCosts(4, kSlot, kSlot);
    EXPECT_TRUE(engine::simulate(schedule, costs, stop.get_token()).ok());
    stop.request_stop();
    const traces::Expected<traces::Trace> stopped = engine::simulate(schedule, costs, stop.get_token());
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().message, "the simulation was stopped");
}

TEST(Simulate, WantsOneCostEntryPerStage)
{
    EXPECT_FALSE(engine::simulate(made("1f1b", 4, 2), slotCosts(3, kSlot, kSlot)).ok());
}

TEST(Simulate, RefusesWhatItsClockOrItsByteCountsCannotTell)
{
    const engine::Schedule schedule = made("1f1b", 2, 8);
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.transfer = 1'000'000'000'000'000'000; // 32 years, 32 times
    EXPECT_THAT(engine::simulate(schedule, costs).error().message, ::testing::HasSubstr("clock of nanoseconds"));
    costs.transfer = 0;
    costs.stages[0].activationBytes = 2'000'000'000'000'000'000;
    EXPECT_THAT(engine::simulate(schedule, costs).error().message, ::testing::HasSubstr("smaller activations"));
}

// What could be simulated but not read again would be lost with its file.
TEST(Simulate, RefusesWhatATraceCannotHold)
{
    const engine::Schedule schedule = made("1f1b", 2, 8);
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.transfer = traces::kMostTime / 16; // 34 actions and stages take that longer
    EXPECT_FALSE(engine::simulate(schedule, costs).ok());
    costs.transfer = 0;
    costs.stages[0].weightBytes = 2 * traces::kMostBytes;
    EXPECT_FALSE(engine::simulate(schedule, costs).ok());
}

TEST(Simulate, DrawsTheTwoDirectionsApart)
{
    const traces::Work down{engine::ActionKind::Forward, traces::Flow::Down, traces::Stage{0}, traces::MicroBatch{0}};
    traces::Work up = down;
    up.flow = traces::Flow::Up;
    EXPECT_NE(engine::jitterFactor(0.1, 1, down), engine::jitterFactor(0.1, 1, up));
}

TEST(Simulate, DrawsTheSameJitterForTheSameSeedWhateverTheSchedule)
{
    engine::CostTable costs = slotCosts(3, kSlot, 2 * kSlot);
    costs.jitter = 0.05;
    const traces::StepFigures a = figuresOf(made("1f1b", 3, 6), costs);
    const traces::StepFigures b = figuresOf(made("gpipe", 3, 6), costs);
    EXPECT_NE(a.makespan, 24 * kSlot);
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(a.ranks[r].busy, b.ranks[r].busy);
    costs.seed = 2;
    EXPECT_NE(figuresOf(made("1f1b", 3, 6), costs).makespan, a.makespan);
}

} // namespace
