// SPDX-License-Identifier: Apache-2.0
//
// What holds for the schedules in V placement, over a grid of ranks and micro-batches.
#include "unit_costs.h"

#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

#include <random>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

constexpr int kMostRanks = 9;
constexpr int kMostMicroBatches = 20;

// F = I = W = 1 slot for a chunk, a backward or a pair the sum of its parts.
traces::StepFigures unitFigures(const engine::Schedule& schedule)
{
    return figuresOf(schedule, slotCosts(schedule.stages(), kSlot, 2 * kSlot));
}

double peakOf(const traces::StepFigures& figures)
{
    double peak = 0;
    for (const traces::RankFigures& rank : figures.ranks) peak = std::max(peak, rank.peakActivations);
    return peak;
}

std::string errorOf(const engine::ScheduleRequest& request)
{
    traces::Expected<engine::Schedule> schedule = engine::generate(request);
    return schedule.ok() ? "no error" : schedule.error().message;
}

template <class Visit>
void forEachSize(const std::string& name, Visit&& visit)
{
    for (int p = 1; p <= kMostRanks; ++p)
        for (int m = 1; m <= kMostMicroBatches; ++m) {
            const traces::Expected<engine::Schedule> schedule =
                engine::generate({.name = name, .ranks = p, .chunks = 2, .microbatches = m});
            if (!schedule.ok()) continue;
            SCOPED_TRACE(name + " p=" + std::to_string(p) + " m=" + std::to_string(m));
            ASSERT_TRUE(engine::validate(schedule.value()).legal());
            visit(p, m, schedule.value(), unitFigures(schedule.value()));
        }
}

TEST(VSchedules, GoDownTheRanksAndBack)
{
    for (const char* name : {"zb-v", "zb-v-auto", "v-half", "v-min", "1f1b-v", "dualpipe-v"})
        EXPECT_EQ(made(name, 3, 6, 2).stageToRank, engine::wavePlacement(3, 2)) << name;
}

TEST(VSchedules, SayThatTheyTakeTwoChunks)
{
    for (const char* name : {"zb-v", "zb-v-auto", "v-half", "v-min", "1f1b-v", "dualpipe-v"}) {
        EXPECT_THAT(errorOf({name, 4, 1, 8}),
                    HasSubstr("1 chunk per rank is not allowed, it gives each rank 2; use 2 chunks, or 1f1b"));
        EXPECT_THAT(errorOf({name, 4, 3, 8}),
                    HasSubstr("3 chunks per rank are not allowed, it gives each rank 2; use 2 chunks"));
    }
}

TEST(ZbV, AlternatesItsChunksAfterTheWarmUp)
{
    EXPECT_EQ(engine::toText(made("zb-v", 2, 4, 2)),
              "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,0W2,0I3,0W3\n"
              "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,2W3,1W3\n");
}

TEST(ZbV, LeavesOutTheMicroBatchesThatAreMissing)
{
    EXPECT_EQ(engine::toText(made("zb-v", 2, 1, 2)), "0F0,3F0,3I0,3W0,0I0,0W0\n"
                                                     "1F0,2F0,2I0,2W0,1I0,1W0\n");
}

TEST(ZbV, HasNoBubbleWithinARankAndTheMemoryOfOneFOneB)
{
    forEachSize("zb-v", [](int p, int m, const engine::Schedule&, const traces::StepFigures& figures) {
        EXPECT_LE(peakOf(figures), std::min(p, m));
        if (m < 2 * p - 1) return;
        EXPECT_EQ(figures.maxSpan, 6 * m * kSlot);
        EXPECT_EQ(figures.makespan, (6 * m + p - 1) * kSlot);
        EXPECT_DOUBLE_EQ(peakOf(figures), p);
    });
}

engine::CostTable chunkCosts(int stages, engine::StageCosts costs, traces::TimeNs transfer)
{
    costs.backward = costs.inputGrad + costs.weightGrad;
    engine::CostTable table;
    table.stages.assign(static_cast<std::size_t>(stages), costs);
    table.transfer = transfer;
    return table;
}

TEST(ZbVAuto, IsZbVWhereAllTakesTheSameTime)
{
    forEachSize("zb-v-auto", [](int p, int m, const engine::Schedule&, const traces::StepFigures& figures) {
        EXPECT_LE(peakOf(figures), std::min(p, m));
        if (m < 2 * p - 1) return;
        EXPECT_EQ(figures.maxSpan, 6 * m * kSlot);
    });
}

// orders of sail-sg's zbv.py for the same costs
TEST(ZbVAuto, PlansByTimesTransfersAndMemory)
{
    const engine::CostTable costs =
        chunkCosts(4, {.forward = 10, .inputGrad = 14, .weightGrad = 7, .activationBytes = 60, .wgradBytes = 40}, 3);
    EXPECT_EQ(engine::toText(engine::generate({.name = "zb-v-auto",
                                               .ranks = 2,
                                               .chunks = 2,
                                               .microbatches = 5,
                                               .costs = &costs,
                                               .memoryLimit = traces::Bytes{6 * 60}})
                                 .value()),
              "0F0,0F1,0F2,3F0,3I0,3F1,3I1,0F3,3W0,0I0,3F2,3I2,0F4,0I1,3W1,3F3,3I3,0W0,3W2,0W1,0I2,3F4,3I4,3W3,0I3,0W2,3W4,0W3,"
              "0I4,0W4\n"
              "1F0,2F0,1F1,2F1,2I0,1F2,1I0,2F2,2I1,1F3,1I1,2W0,2F3,2I2,1W0,1F4,1I2,2W1,2F4,2I3,1I3,1W1,2I4,1I4,2W2,1W2,2W3,1W3,"
              "2W4,1W4\n");
    const engine::CostTable slow = chunkCosts(4, {.forward = 10, .inputGrad = 10, .weightGrad = 4}, 20);
    EXPECT_EQ(engine::toText(
                  engine::generate({.name = "zb-v-auto", .ranks = 2, .chunks = 2, .microbatches = 5, .costs = &slow}).value()),
              "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0F4,0I1,0W1,3F3,3I3,3W3,0I2,0W2,3F4,3I4,0I3,3W4,0W3,"
              "0I4,0W4\n"
              "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1F4,1I2,1W2,2F4,2I3,1I3,2W3,1W3,2I4,1I4,"
              "2W4,1W4\n");
}

// profiled times of the Zero-Bubble paper's 1.5B and 6.2B models, arXiv 2401.10241 table 9, halved for two chunks
TEST(ZbVAuto, WaitsLessThanTheHandMadeOrder)
{
    const engine::StageCosts models[] = {{.forward = 9'261'000, .inputGrad = 9'043'000, .weightGrad = 4'668'500},
                                         {.forward = 14'859'000, .inputGrad = 14'722'000, .weightGrad = 9'963'500}};
    for (const engine::StageCosts& model : models)
        for (const int m : {24, 32, 64}) {
            const engine::CostTable costs = chunkCosts(16, model, 601'000);
            const engine::Schedule planned =
                engine::generate({.name = "zb-v-auto", .ranks = 8, .chunks = 2, .microbatches = m, .costs = &costs}).value();
            EXPECT_LT(figuresOf(planned, costs).maxSpan, figuresOf(made("zb-v", 8, m, 2), costs).maxSpan);
            EXPECT_LE(peakOf(figuresOf(planned, costs)), 8);
        }
}

// stages of different times and sizes, while the planner goes by one of each
TEST(ZbVAuto, IsLegalAndKeepsItsLimitWhateverTheCosts)
{
    std::mt19937 random(11);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int trial = 0; trial < 400; ++trial) {
        const int p = among(1, 8);
        const int m = among(1, 20);
        engine::CostTable costs = slotCosts(2 * p, 0, 0, among(0, 1) * among(0, 60));
        const int most[] = {30 * among(0, 2), 30 * among(0, 2), 30 * among(0, 2)};
        traces::Bytes largest = 0;
        for (engine::StageCosts& stage : costs.stages) {
            stage.forward = among(0, most[0]);
            stage.inputGrad = among(0, most[1]);
            stage.weightGrad = among(0, most[2]);
            stage.activationBytes = among(1, 100);
            stage.wgradBytes = among(0, static_cast<int>(stage.activationBytes));
            largest = std::max(largest, stage.activationBytes);
        }
        const traces::Bytes limit = largest * (2 * std::min(p, m) + among(0, p));
        SCOPED_TRACE("p=" + std::to_string(p) + " m=" + std::to_string(m) + " trial " + std::to_string(trial));
        const traces::Expected<engine::Schedule> schedule = engine::generate(
            {.name = "zb-v-auto", .ranks = p, .chunks = 2, .microbatches = m, .costs = &costs, .memoryLimit = limit});
        ASSERT_TRUE(schedule.ok()) << schedule.error().message;
        ASSERT_TRUE(engine::validate(schedule.value()).legal());
        for (const traces::RankFigures& rank : figuresOf(schedule.value(), costs).ranks) EXPECT_LE(rank.peakMemory, limit);
    }
}

TEST(ZbVAuto, SaysWhichLimitFits)
{
    const engine::CostTable costs = chunkCosts(8, {.forward = 1, .inputGrad = 1, .weightGrad = 1, .activationBytes = 1000}, 0);
    const auto limited = [&](traces::Bytes limit, int m) {
        return errorOf({.name = "zb-v-auto", .ranks = 4, .chunks = 2, .microbatches = m, .costs = &costs, .memoryLimit = limit});
    };
    EXPECT_THAT(limited(7999, 8), HasSubstr("the nearest is 8000"));
    EXPECT_EQ(limited(8000, 8), "no error");
    EXPECT_THAT(limited(3999, 2), HasSubstr("the nearest is 4000"));
    EXPECT_EQ(limited(4000, 2), "no error");
    const engine::CostTable sizeless = chunkCosts(8, {.forward = 1, .inputGrad = 1, .weightGrad = 1}, 0);
    EXPECT_THAT(errorOf({.name = "zb-v-auto", .ranks = 4, .chunks = 2, .costs = &sizeless, .memoryLimit = 8000}),
                HasSubstr("give the bytes of its activations"));
    EXPECT_THAT(errorOf({.name = "zb-v-auto", .ranks = 4, .chunks = 2, .memoryLimit = 8000}),
                HasSubstr("give the bytes of its activations"));
    EXPECT_THAT(errorOf({.name = "zb-v-auto", .ranks = 3, .chunks = 2, .costs = &costs}), HasSubstr("the costs are of 8 stages, there are 6"));
}

// README of DualPipe: bubble (PP/2 - 1)(F&B + B - 3W), activations PP + 1 on half of the ranks, with PP = 2p stages
TEST(DualPipeV, HasTheStatedBubbleAndActivations)
{
    int sizes = 0;
    forEachSize("dualpipe-v", [&](int p, int m, const engine::Schedule&, const traces::StepFigures& figures) {
        EXPECT_EQ(figures.makespan, (6 * m + (p - 1) * (3 + 2 - 3)) * kSlot);
        for (const traces::RankFigures& rank : figures.ranks) EXPECT_DOUBLE_EQ(rank.peakActivations, (2 * p + 1) / 2.0);
        ++sizes;
    });
    EXPECT_GT(sizes, 80);
}

// reference value of an independent simulation: p=4, m=10, 66 slots, 60 of them work
TEST(DualPipeV, TakesTenMicroBatchesOnFourRanks)
{
    const traces::StepFigures figures = unitFigures(made("dualpipe-v", 4, 10, 2));
    EXPECT_EQ(figures.makespan, 66 * kSlot);
    EXPECT_DOUBLE_EQ(figures.work, 60.0 * kSlot);
}

TEST(DualPipeV, NamesTheFewestMicroBatchesThatFit)
{
    EXPECT_THAT(errorOf({"dualpipe-v", 4, 2, 7}), HasSubstr("the nearest number that fits is 8"));
    EXPECT_EQ(errorOf({"dualpipe-v", 4, 2, 8}), "no error");
}

struct BlockFigures {
    const char* schedule;
    int ranks;
    int microbatches;
    double bubbleSpan;
    double peak;
};

// sail-sg's zbv_greedy.py with unit costs, timed by an independent simulation
TEST(BuildingBlocks, HaveTheBubblesAndPeaksOfTheirAuthors)
{
    const BlockFigures rows[] = {
        {"v-half", 4, 8, .0943, 3},   {"v-half", 4, 16, .0495, 3}, {"v-half", 8, 16, .1504, 5}, {"v-half", 8, 32, .0813, 5},
        {"v-half", 16, 64, .0965, 9}, {"v-min", 4, 8, .1864, 2},   {"v-min", 4, 16, .1028, 2},  {"v-min", 8, 16, .2195, 4},
        {"v-min", 8, 32, .1233, 4},   {"v-min", 16, 64, .1332, 6},
    };
    for (const BlockFigures& row : rows) {
        SCOPED_TRACE(std::string(row.schedule) + " p=" + std::to_string(row.ranks) +
                     " m=" + std::to_string(row.microbatches));
        const traces::StepFigures figures = unitFigures(made(row.schedule, row.ranks, row.microbatches, 2));
        EXPECT_NEAR(figures.bubbleSpan, row.bubbleSpan, 5e-5);
        EXPECT_DOUBLE_EQ(peakOf(figures), row.peak);
    }
}

TEST(BuildingBlocks, HoldNoMoreThanTheirShareOfTheMemory)
{
    const std::pair<const char*, int (*)(int)> shares[] = {{"v-half", [](int p) { return (p + 2) / 2; }},
                                                           {"v-min", [](int p) { return (p + 4) / 3; }},
                                                           {"1f1b-v", [](int p) { return (2 * p + 3) / 3; }}};
    for (const auto& [name, share] : shares)
        forEachSize(name, [&](int p, int m, const engine::Schedule&, const traces::StepFigures& figures) {
            EXPECT_LE(peakOf(figures), share(p));
            if (m >= 2 * p) {
                EXPECT_DOUBLE_EQ(peakOf(figures), share(p));
            }
            EXPECT_LE(figures.makespan, 6 * (m + p - 1) * kSlot); // 1F1B's
        });
}

TEST(BuildingBlocks, KeepTheirBubbleHoweverManyMicroBatchesThereAre)
{
    for (const char* name : {"v-half", "v-min", "1f1b-v"})
        for (const int p : {2, 3, 4, 5, 6, 8}) {
            const auto bubble = [&](int m) { return unitFigures(made(name, p, m, 2)).makespan - 6 * m * kSlot; };
            EXPECT_EQ(bubble(3 * p), bubble(40)) << name << " p=" << p;
        }
}

TEST(BuildingBlocks, SayHowManyRanksTheyTake)
{
    for (const char* name : {"v-half", "v-min", "1f1b-v"})
        EXPECT_THAT(errorOf({name, 600, 2, 1}), HasSubstr("use 512 ranks at most")) << name;
}

// Planning takes its time with many ranks; a window waits for its end.
TEST(BuildingBlocks, StopWhilePlanning)
{
    std::stop_source stop;
    stop.request_stop();
    for (const char* name : {"v-half", "v-min", "1f1b-v"})
        EXPECT_THAT(errorOf({.name = name, .ranks = 512, .chunks = 2, .microbatches = 2000, .stop = stop.get_token()}),
                    HasSubstr("stopped"));
}

} // namespace
