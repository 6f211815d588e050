// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/simulation_controller.h"

#include "engine/plan/plan_json.h"

#include <QSignalSpy>
#include <QTest>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

engine::Plan planOf(int ranks, int microbatches)
{
    engine::Plan plan;
    plan.pipeline.ranks = ranks;
    plan.pipeline.microbatches = microbatches;
    return plan;
}

TEST(SimulationController, SimulatesASmallPlanAtOnce)
{
    SimulationController controller;
    QSignalSpy changed(&controller, &SimulationController::changed);
    controller.setPlan(planOf(4, 8));
    EXPECT_EQ(changed.size(), 1);
    ASSERT_TRUE(controller.simulation().trace);
    EXPECT_EQ(controller.simulation().trace->info.microbatches, 8);
    EXPECT_FALSE(controller.busy());
}

TEST(SimulationController, SimulatesALargePlanBesideTheWindow)
{
    SimulationController controller;
    QSignalSpy changed(&controller, &SimulationController::changed);
    controller.setPlan(planOf(64, 1000));
    EXPECT_TRUE(controller.busy());
    EXPECT_EQ(changed.size(), 0);
    ASSERT_TRUE(QTest::qWaitFor([&] { return changed.size() == 1; }, 60'000));
    EXPECT_FALSE(controller.busy());
    EXPECT_EQ(controller.simulation().trace->info.ranks, 64);
}

TEST(SimulationController, ShowsOnlyTheNewestOfPlansThatFollowEachOther)
{
    SimulationController controller;
    QSignalSpy changed(&controller, &SimulationController::changed);
    controller.setPlan(planOf(64, 1000));
    controller.setPlan(planOf(32, 1000));
    controller.setPlan(planOf(4, 8)); // small: at once, and the others' results never come
    EXPECT_EQ(changed.size(), 1);
    controller.setPlan(planOf(16, 2000));
    ASSERT_TRUE(QTest::qWaitFor([&] { return changed.size() == 2; }, 60'000));
    EXPECT_EQ(controller.simulation().trace->info.ranks, 16);
}

TEST(SimulationController, KeepsTheLastTraceAndSaysWhyAPlanHasNone)
{
    SimulationController controller;
    controller.setPlan(planOf(4, 8));
    const auto before = controller.simulation().trace;
    engine::Plan impossible = planOf(4, 8);
    impossible.pipeline.chunks = 3; // 1F1B has one
    controller.setPlan(impossible);
    EXPECT_FALSE(controller.problem().isEmpty());
    EXPECT_EQ(controller.simulation().trace, before);
    controller.setPlan(planOf(4, 8));
    EXPECT_TRUE(controller.problem().isEmpty());
}

TEST(SimulationController, DoesNotSimulateAnewForWhatChangesNoTime)
{
    SimulationController controller;
    QSignalSpy changed(&controller, &SimulationController::changed);
    engine::Plan plan = planOf(4, 8);
    controller.setPlan(plan);
    plan.run.steps = 77;
    plan.description = "other words";
    controller.setPlan(plan);
    EXPECT_EQ(changed.size(), 1);
}

// A file that is still to be named, or settings of a run that contradict each other, are no business of a simulation.
TEST(SimulationController, SimulatesWhateverARunLacks)
{
    SimulationController controller;
    engine::Plan plan = planOf(4, 8);
    plan.data.source = engine::DataSource::Idx;
    plan.run.slowdown = {2};
    ASSERT_FALSE(checkPlan(plan).ok());
    controller.setPlan(plan);
    EXPECT_EQ(controller.problem().toStdString(), "");
    EXPECT_TRUE(controller.simulation().trace);
}

TEST(SimulationController, SimulatesAnewForWhatTheMachineAndTheOptimizerChange)
{
    SimulationController controller;
    engine::Plan plan = engine::presetPlan("gpt-small").value();
    plan.run.optimizer = engine::OptimizerKind::Sgd;
    controller.setPlan(plan);
    ASSERT_TRUE(controller.simulation().trace);
    const traces::RankFigures before = controller.simulation().figures.ranks[0];
    plan.run.optimizer = engine::OptimizerKind::AdamW; // keeps two more values for each weight
    controller.setPlan(plan);
    EXPECT_GT(controller.simulation().figures.ranks[0].peakMemory, before.peakMemory);
    const traces::Bytes fine = controller.simulation().figures.ranks[0].peakMemory;
    plan.run.precision = engine::Precision::Bf16; // halves weights and activations, and adds a copy of the weights
    controller.setPlan(plan);
    EXPECT_LT(controller.simulation().figures.ranks[0].peakMemory, fine);
    plan.machine.rankScale.assign(static_cast<std::size_t>(plan.pipeline.ranks), 2);
    controller.setPlan(plan);
    EXPECT_EQ(controller.simulation().figures.ranks[0].busy, 2 * before.busy);
}

TEST(SimulationController, CanBeCancelled)
{
    SimulationController controller;
    controller.setPlan(planOf(4, 8));
    controller.setPlan(planOf(64, 1000));
    controller.cancel();
    EXPECT_FALSE(controller.busy());
    EXPECT_TRUE(controller.problem().contains("cancelled"));
    EXPECT_EQ(controller.simulation().trace->info.ranks, 4);
    QSignalSpy changed(&controller, &SimulationController::changed);
    controller.setPlan(planOf(64, 1000)); // may be asked for again
    ASSERT_TRUE(QTest::qWaitFor([&] { return changed.size() == 1; }, 60'000));
    EXPECT_TRUE(controller.problem().isEmpty());
}

TEST(SimulatePlan, GivesUpWhenItIsAskedTo)
{
    std::stop_source source;
    EXPECT_TRUE(simulatePlan(planOf(4, 8), source.get_token()).ok());
    source.request_stop();
    const traces::Expected<Simulation> stopped = simulatePlan(planOf(4, 8), source.get_token());
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().message, "the making of the schedule was stopped") << "no part of the work is done to its end";
}

TEST(SimulatePlan, PutsThePlanItselfIntoTheTrace)
{
    const engine::Plan plan = engine::presetPlan("gpt-small").value();
    const Simulation simulation = simulatePlan(plan).value();
    EXPECT_EQ(engine::readPlan(simulation.trace->info.planJson).value(), plan);
    EXPECT_EQ(simulation.trace->info.title, "gpt-small, 1F1B");
}

} // namespace
} // namespace stagecraft::ui
