// SPDX-License-Identifier: Apache-2.0
//
// The Zero Bubble paper (arXiv 2401.10241): profiled times of table 9 into bubble rates of table 5, to all printed digits. The
// rate is 1 - work/longest span of a rank. The interleaved column has a rule of its own: see simulate_test.cpp.
#include "unit_costs.h"

#include <cmath>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

constexpr int kRanks = 8;

struct Row {
    int heads, hidden; // table 3: of the models with 1.5 and 6.2 billion parameters
    int microbatches;
    double forward, inputGrad, weightGrad, transfer; // ms
    double oneFOneB, h1, h2, onceP, twiceP;
};

constexpr Row kRows[] = {
    {24, 2304, 24, 18.522, 18.086, 9.337, .601, .2431, .1585, .1083, .1585, .0433},
    {24, 2304, 32, 18.513, 18.086, 9.331, .626, .1985, .1242, .0837, .1242, .0039},
    {24, 2304, 64, 18.546, 18.097, 9.321, .762, .1240, .0674, .0444, .0674, .0026},
    {32, 4096, 24, 29.718, 29.444, 19.927, .527, .2347, .1323, .0698, .1323, .0029},
    {32, 4096, 32, 29.802, 29.428, 19.530, .577, .1898, .1045, .0559, .1045, .0022},
    {32, 4096, 64, 29.935, 29.621, 19.388, .535, .1091, .0554, .0294, .0554, .0010},
};

engine::CostTable costsOf(const Row& row)
{
    const auto ns = [](double ms) { return static_cast<traces::TimeNs>(std::llround(ms * 1e6)); };
    engine::CostTable costs = slotCosts(kRanks, ns(row.forward), ns(row.inputGrad) + ns(row.weightGrad), ns(row.transfer));
    for (engine::StageCosts& stage : costs.stages) {
        stage.inputGrad = ns(row.inputGrad);
        stage.weightGrad = ns(row.weightGrad);
        // table 1, per sequence of 1024 tokens
        stage.activationBytes = (34LL * row.hidden + 5LL * row.heads * 1024) * 1024;
        stage.wgradBytes = 32LL * row.hidden * 1024;
    }
    return costs;
}

class ZeroBubbleTable : public ::testing::TestWithParam<Row> {};

TEST_P(ZeroBubbleTable, IsReproducedByTheHandMadeSchedules)
{
    const Row& row = GetParam();
    const engine::CostTable costs = costsOf(row);
    EXPECT_NEAR(figuresOf(made("1f1b", kRanks, row.microbatches), costs).bubbleMakespan, row.oneFOneB, 5e-5);
    EXPECT_NEAR(figuresOf(made("zb-h1", kRanks, row.microbatches), costs).bubbleMakespan, row.h1, 5e-5);
    EXPECT_NEAR(figuresOf(made("zb-h2", kRanks, row.microbatches), costs).bubbleSpan, row.h2, 5e-5);
}

TEST_P(ZeroBubbleTable, IsReproducedByTheAutomaticOne)
{
    const Row& row = GetParam();
    const engine::CostTable costs = costsOf(row);
    const traces::Bytes perMicrobatch = costs.stages[0].activationBytes;
    for (const auto& [limit, bubble] : {std::pair{kRanks * perMicrobatch, row.onceP}, {2 * kRanks * perMicrobatch, row.twiceP}}) {
        const engine::Schedule schedule = engine::generate({.name = "zb-auto",
                                                            .ranks = kRanks,
                                                            .microbatches = row.microbatches,
                                                            .costs = &costs,
                                                            .memoryLimit = limit})
                                              .value();
        const traces::StepFigures figures = figuresOf(schedule, costs);
        EXPECT_NEAR(figures.bubbleSpan, bubble, 5e-5);
        for (const traces::RankFigures& rank : figures.ranks) EXPECT_LE(rank.peakMemory, limit);
    }
}

INSTANTIATE_TEST_SUITE_P(Rows, ZeroBubbleTable, ::testing::ValuesIn(kRows), [](const auto& test) {
    return "h" + std::to_string(test.param.hidden) + "_m" + std::to_string(test.param.microbatches);
});

} // namespace
