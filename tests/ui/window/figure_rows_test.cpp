// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figure_rows.h"

#include "engine/plan/plan_json.h"
#include "tests/ui/window/test_plans.h"
#include "ui/window/simulation_controller.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

const FigureRow* find(const std::vector<FigureRow>& rows, const char* name)
{
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const FigureRow& r) { return r.name == name; });
    return row == rows.end() ? nullptr : &*row;
}

class FigureRowsTest : public testing::Test {
protected:
    void simulate(engine::Plan with)
    {
        plan = std::move(with);
        simulation = simulatePlan(plan).value();
        input.plan = &plan;
        input.costs = &simulation.costs;
        input.simulated = &simulation.figures;
    }
    engine::Plan plan;
    Simulation simulation;
    FigureInput input;
};

TEST_F(FigureRowsTest, StandTheFormulaBesideTheSimulatedValue)
{
    simulate(planOf(pipelineOf("1f1b", 4, 1, 5)));
    const auto rows = figureRows(input);
    const FigureRow* bubble = find(rows, "Bubble of the makespan");
    ASSERT_TRUE(bubble);
    EXPECT_EQ(bubble->formula, "1 − work/makespan = (p−1)/(m+p−1)");
    EXPECT_EQ(bubble->byFormula, "37.5 %");
    EXPECT_EQ(bubble->simulated, "37.5 %");
    EXPECT_EQ(bubble->other, "");
    EXPECT_EQ(find(rows, "Makespan")->byFormula, "24 ms"); // (5+4-1)(1+2) ms
    EXPECT_EQ(find(rows, "Makespan")->simulated, "24 ms");
    EXPECT_EQ(find(rows, "Utilisation")->simulated, "62.5 %");
    EXPECT_EQ(find(rows, "Peak activations")->byFormula, "4");
    EXPECT_EQ(find(rows, "Throughput")->simulated, "208.3/s"); // 5 / 24 ms
    EXPECT_FALSE(find(rows, "Rows"));
    EXPECT_FALSE(find(rows, "Prediction error"));
}

TEST_F(FigureRowsTest, GiveNoTheoreticalMakespanWhereItsConditionsDoNotHold)
{
    simulate(engine::presetPlan("imbalanced").value());
    EXPECT_EQ(find(figureRows(input), "Makespan")->byFormula, "");
    engine::Plan slow = planOf(pipelineOf("1f1b", 4, 1, 5));
    slow.costs.latency = 1000;
    simulate(slow);
    EXPECT_EQ(find(figureRows(input), "Makespan")->byFormula, "");
}

TEST_F(FigureRowsTest, CountRowsOrTokensOfTheModel)
{
    simulate(engine::presetPlan("hello").value());
    EXPECT_TRUE(find(figureRows(input), "Rows"));
    simulate(engine::presetPlan("gpt-small").value());
    const auto rows = figureRows(input);
    ASSERT_TRUE(find(rows, "Tokens"));
    EXPECT_FALSE(find(rows, "Rows"));
}

TEST_F(FigureRowsTest, TellTheErrorOfThePrediction)
{
    simulate(planOf(pipelineOf("1f1b", 4, 1, 5)));
    traces::StepFigures measured = simulation.figures;
    measured.makespan = 30'000'000;
    engine::RunResult result;
    result.stepNs = 30'000'000;
    result.predictedStepNs = 29'400'000;
    result.efficiency = 0.97;
    result.gradientCheck = engine::GradientCheck::Bitwise;
    input.other = &measured;
    input.otherMicrobatches = 6;
    input.result = &result;
    const auto rows = figureRows(input);
    EXPECT_EQ(find(rows, "Prediction error")->other, "-20 %"); // 24/30 - 1
    EXPECT_EQ(find(rows, "Own costs' prediction")->other, "-2 %");
    EXPECT_EQ(find(rows, "Efficiency")->other, "97 %");
    EXPECT_EQ(find(rows, "Gradient check")->other, "bitwise");
    EXPECT_EQ(find(rows, "Throughput")->other, "200/s"); // its own 6 micro-batches in 30 ms
}

} // namespace
} // namespace stagecraft::ui
