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
        input.simulatedFacts = factsOf(plan);
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
    EXPECT_EQ(find(rows, "Throughput")->simulated, "208.3 /s"); // 5 / 24 ms
    EXPECT_FALSE(find(rows, "Rows"));
    EXPECT_FALSE(find(rows, "Prediction error"));
}

TEST_F(FigureRowsTest, SayWhatTheSteadyBubbleIsAShareOf)
{
    simulate(planOf(pipelineOf("1f1b", 4, 1, 16)));
    const auto rows = figureRows(input);
    const FigureRow* steady = find(rows, "Steady bubble");
    ASSERT_TRUE(steady);
    EXPECT_EQ(steady->formula, "idle/time over whole periods");
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
    input.otherFacts = input.simulatedFacts;
    input.result = &result;
    EXPECT_EQ(find(figureRows(input), "Prediction error")->other, "-20 %"); // 24/30 - 1
    input.otherFacts->pipeline.microbatches = 6;
    const auto rows = figureRows(input);
    EXPECT_EQ(find(rows, "Prediction error")->other, "other plan");
    EXPECT_EQ(find(rows, "Own costs' prediction")->other, "-2 %");
    EXPECT_EQ(find(rows, "Efficiency")->other, "97 %");
    EXPECT_EQ(find(rows, "Gradient check")->other, "bitwise");
    EXPECT_EQ(find(rows, "Throughput")->other, "200 /s"); // its own 6 micro-batches in 30 ms
    input.otherFacts->replicas = 2;
    EXPECT_EQ(find(figureRows(input), "Throughput")->other, "400 /s"); // of each replica
}

TEST_F(FigureRowsTest, CountTokensByTheModelOfTheTraceNotTheEditedPlan)
{
    engine::Plan run = engine::presetPlan("gpt-small").value();
    const PlanFacts facts = factsOf(run);
    run.model.microbatchRows *= 4; // edited after the run
    simulate(run);
    traces::StepFigures measured = simulation.figures;
    measured.makespan = 1'000'000'000;
    input.other = &measured;
    input.otherFacts = facts;
    const auto rows = figureRows(input);
    const auto* embedding = std::get_if<engine::Embedding>(&facts.model->layers.front());
    const double tokens = facts.pipeline.microbatches * facts.model->microbatchRows * embedding->sequence;
    EXPECT_EQ(find(rows, "Tokens")->other, QString::number(tokens / 1000, 'g', 4) + " k/s");
    EXPECT_EQ(find(rows, "Prediction error")->other, "other plan"); // another model
}

TEST_F(FigureRowsTest, TellOnlyWhatIsKnownOfATraceThatStandsAlone)
{
    simulate(planOf(pipelineOf("1f1b", 4, 1, 5)));
    const traces::StepFigures opened = simulation.figures;
    input.simulated = nullptr;
    input.other = &opened;
    input.otherFacts = std::nullopt; // another tool's
    auto rows = figureRows(input);
    EXPECT_EQ(find(rows, "Bubble of the makespan")->byFormula, ""); // not the edited plan's
    EXPECT_EQ(find(rows, "Throughput")->other, "–");
    input.otherFacts = PlanFacts{pipelineOf("gpipe", 3, 1, 6), std::nullopt};
    rows = figureRows(input);
    EXPECT_EQ(find(rows, "Bubble of the makespan")->byFormula, "25 %"); // 2/(6+2)
}

TEST_F(FigureRowsTest, DashWhatIsNothingOverNothing)
{
    simulate(planOf(pipelineOf("1f1b", 4, 1, 5)));
    simulation.figures.makespan = 0;
    simulation.figures.work = 0;
    const auto rows = figureRows(input);
    for (const char* name : {"Bubble of the makespan", "Bubble over ideal", "Utilisation", "Throughput", "Peak memory"})
        EXPECT_EQ(find(rows, name)->simulated, "–") << name;
}

TEST(PlanFactsTest, ComeFromThePlanOrTheHeaderOfATrace)
{
    traces::TraceInfo info;
    EXPECT_FALSE(factsOf(info));
    info.schedule = "1f1b";
    info.ranks = 6;
    info.microbatches = 5;
    EXPECT_EQ(factsOf(info)->pipeline.ranks, 6);
    EXPECT_FALSE(factsOf(info)->model);
    const engine::Plan plan = engine::presetPlan("gpt-small").value();
    info.planJson = engine::writePlan(plan);
    EXPECT_EQ(*factsOf(info), factsOf(plan));
    PlanFacts other = factsOf(plan);
    EXPECT_TRUE(comparable(other, factsOf(plan)));
    other.model.reset(); // not told
    EXPECT_TRUE(comparable(other, factsOf(plan)));
    other.pipeline.schedule = "gpipe";
    EXPECT_FALSE(comparable(other, factsOf(plan)));
}

} // namespace
} // namespace stagecraft::ui
