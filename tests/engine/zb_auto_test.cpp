// SPDX-License-Identifier: Apache-2.0
#include "golden.h"
#include "unit_costs.h"

#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

#include <chrono>
#include <random>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

// Equal times; half of what a forward keeps stays until the weight gradient.
engine::CostTable sizedCosts(int stages, traces::TimeNs transfer = 0)
{
    engine::CostTable costs = slotCosts(stages, kSlot, 2 * kSlot, transfer);
    for (engine::StageCosts& stage : costs.stages) {
        stage.activationBytes = 2;
        stage.wgradBytes = 1;
    }
    return costs;
}

engine::Schedule planned(const engine::CostTable& costs, int microbatches, traces::Bytes limit)
{
    return engine::generate({.name = "zb-auto",
                             .ranks = static_cast<int>(costs.stages.size()),
                             .microbatches = microbatches,
                             .costs = &costs,
                             .memoryLimit = limit})
        .value();
}

std::string refusal(int ranks, const engine::CostTable* costs, traces::Bytes limit)
{
    const traces::Expected<void> verdict =
        engine::checkRequest({.name = "zb-auto", .ranks = ranks, .microbatches = 8, .costs = costs, .memoryLimit = limit});
    return verdict.ok() ? "no error" : verdict.error().message;
}

TEST(ZbAuto, PlansForTwiceTheMemoryAsTheReferenceDoes)
{
    const Golden golden = readGolden("zbauto_2p_p4_m8.txt");
    const engine::Schedule schedule = planned(sizedCosts(4), 8, 2 * 4 * 2);
    EXPECT_EQ(engine::toText(schedule), withoutComments(golden.text));
    const traces::StepFigures figures = figuresOf(schedule, sizedCosts(4));
    EXPECT_EQ(figures.bubbleSpan, 0);
    EXPECT_EQ(static_cast<double>(figures.makespan), golden.makespan * kSlot);
    for (std::size_t r = 0; r < 4; ++r) EXPECT_DOUBLE_EQ(figures.ranks[r].peakActivations, golden.peakChunks[r]);
}

TEST(ZbAuto, PlansForAMicroBatchPerRankUnlessToldOtherwise)
{
    const Golden golden = readGolden("zbauto_1p_p4_m8.txt");
    EXPECT_EQ(engine::toText(made("zb-auto", 4, 8)), withoutComments(golden.text));
    EXPECT_EQ(planned(sizedCosts(4), 8, 0), planned(sizedCosts(4), 8, 4 * 2));
}

TEST(ZbAuto, TakesFewMicroBatchesAndOneRank)
{
    EXPECT_EQ(engine::toText(made("zb-auto", 1, 2)), "0F0,0I0,0W0,0F1,0I1,0W1\n");
    EXPECT_EQ(engine::toText(made("zb-auto", 2, 1)), "0F0,0I0,0W0\n1F0,1I0,1W0\n");
    EXPECT_EQ(figuresOf(made("zb-auto", 8, 3), slotCosts(8, kSlot, 2 * kSlot)).makespan, (2 * (3 + 8 - 1) + 1) * kSlot);
}

// Whatever stages cost and hold, the order is legal, keeps the limit and is no worse than one micro-batch at a time.
TEST(ZbAuto, KeepsTheLimitWithUnequalStages)
{
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        engine::CostTable costs = slotCosts(among(1, 9), 0, 0, among(0, 1) == 0 ? 0 : among(1, 300));
        traces::Bytes largest = 0;
        for (engine::StageCosts& stage : costs.stages) {
            stage.forward = among(0, 20) == 0 ? 0 : among(1, 100) * among(1, 10);
            stage.inputGrad = among(0, 1000);
            stage.weightGrad = among(0, 20) == 0 ? 0 : among(1, 1000);
            stage.activationBytes = among(1, 100);
            stage.wgradBytes = among(0, static_cast<int>(stage.activationBytes));
            largest = std::max(largest, stage.activationBytes);
        }
        const int microbatches = among(1, 20);
        const traces::Bytes limit = largest * among(1, 20) + among(0, 50);
        const engine::Schedule schedule = planned(costs, microbatches, limit);
        ASSERT_TRUE(engine::validate(schedule).legal()) << engine::toText(schedule);
        for (const traces::RankFigures& rank : figuresOf(schedule, costs).ranks) EXPECT_LE(rank.peakMemory, limit);
    }
}

// A slow stage before fast ones: those could take all forwards while they wait, but the slow one cannot give them so many.
TEST(ZbAuto, WarmsUpNoStageFurtherThanTheOneBefore)
{
    engine::CostTable costs = sizedCosts(3);
    costs.stages[0].forward = 50 * kSlot;
    costs.stages[1].forward = 1;
    costs.stages[2].inputGrad = 10 * kSlot;
    EXPECT_TRUE(engine::validate(planned(costs, 3, 1000)).legal());
}

TEST(ZbAuto, NeedsALimitThatHoldsAMicroBatch)
{
    const engine::CostTable costs = sizedCosts(4);
    EXPECT_EQ(refusal(4, &costs, 2), "no error");
    EXPECT_THAT(refusal(4, &costs, 1), HasSubstr("a memory limit of 1 B is not allowed, one micro-batch already keeps 2 B; the nearest is 2B"));
    EXPECT_THAT(refusal(4, &costs, -1), HasSubstr("a memory limit of -1 bytes is not allowed"));
}

TEST(ZbAuto, RefusesALimitWhereNothingSaysWhatIsKept)
{
    const engine::CostTable unsized = slotCosts(4, kSlot, 2 * kSlot);
    EXPECT_THAT(refusal(4, &unsized, 1024), HasSubstr("nothing says what a forward keeps, so a memory limit of 1 KiB"));
    EXPECT_THAT(refusal(4, nullptr, 1024), HasSubstr("nothing says what a forward keeps"));
}

TEST(ZbAuto, RefusesCostsThatCannotBePlannedBy)
{
    const engine::CostTable costs = sizedCosts(4);
    EXPECT_THAT(refusal(5, &costs, 0), HasSubstr("the costs are of 4 stages, there are 5"));
    engine::CostTable endless = costs;
    for (engine::StageCosts& stage : endless.stages) stage.forward = traces::TimeNs{1} << 60;
    EXPECT_THAT(refusal(4, &endless, 0), HasSubstr("more than a clock of nanoseconds can tell"));
}

TEST(ZbAuto, CountsWithLimitsBeyondAllBytes)
{
    engine::CostTable costs = sizedCosts(8);
    for (engine::StageCosts& stage : costs.stages) stage.activationBytes = traces::Bytes{1} << 61;
    EXPECT_TRUE(engine::validate(planned(costs, 2, 0)).legal());
    EXPECT_TRUE(engine::validate(planned(sizedCosts(8), 2, std::numeric_limits<traces::Bytes>::max())).legal());
}

// A control that draws at every key plans within a frame; the bound leaves room for a slow machine.
TEST(ZbAuto, PlansSixteenRanksAtOnce)
{
    const engine::CostTable costs = sizedCosts(16, kSlot / 10);
    const auto begin = std::chrono::steady_clock::now();
    planned(costs, 64, 2 * 16 * 2);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
}

} // namespace
