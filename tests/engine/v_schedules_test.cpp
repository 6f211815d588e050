// SPDX-License-Identifier: Apache-2.0
//
// What holds for the schedules in V placement, over a grid of ranks and micro-batches.
#include "unit_costs.h"

#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

#include <cmath>

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
    for (const char* name : {"zb-v", "v-half", "v-min", "1f1b-v", "dualpipe-v"})
        EXPECT_EQ(made(name, 3, 6, 2).stageToRank, engine::wavePlacement(3, 2)) << name;
}

TEST(VSchedules, SayThatTheyTakeTwoChunks)
{
    for (const char* name : {"zb-v", "v-half", "v-min", "1f1b-v", "dualpipe-v"}) {
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
