// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/plan/plan.h"
#include "engine/schedule/recompute.h"
#include "engine/schedule/validate.h"

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

TEST(Recompute, ComesBeforeEveryBackward)
{
    const engine::Schedule schedule = engine::withRecompute(engine::parseSchedule("0F0,0F1,0B0,0I1,0W1\n").value());
    EXPECT_EQ(engine::toText(schedule), engine::toText(engine::parseSchedule("0F0,0F1,0RECOMPUTE0,0B0,0RECOMPUTE1,0I1,0W1\n").value()));
    EXPECT_EQ(engine::withRecompute(schedule), schedule) << "once is enough";
}

TEST(Recompute, TakesThePartnerOfAPair)
{
    const engine::Schedule schedule = engine::withRecompute(made("dualpipe-v", 2, 8, 2));
    EXPECT_TRUE(engine::validate(schedule).legal());
    EXPECT_EQ(schedule.actionCount(), made("dualpipe-v", 2, 8, 2).actionCount() + 4 * 8);
}

// GPipe with re-materialisation: m inputs and the activations of one micro-batch (arXiv 1811.06965 sec. 2.3).
TEST(Recompute, KeepsInputsAndTheActivationsOfOneMicroBatch)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) {
        stage.activationBytes = 1000;
        stage.inputBytes = 10;
    }
    const traces::StepFigures figures = figuresOf(engine::withRecompute(made("gpipe", 4, 8)), costs);
    for (const traces::RankFigures& rank : figures.ranks) {
        EXPECT_EQ(rank.peakMemory, 8 * 10 + 1000);
        EXPECT_EQ(rank.busy, 8 * 4 * kSlot);
    }
    // forwards until 11, then on the last rank 8 x (recompute, backward) until 35, and the last gradient's way of 3 backwards
    EXPECT_EQ(figures.makespan, (11 + 8 * 3 + 3 * 2) * kSlot);
}

TEST(Recompute, IsAPartOfAPlansSchedule)
{
    engine::Plan plan;
    plan.pipeline.recompute = engine::Recompute::Full;
    EXPECT_EQ(engine::scheduleOf(plan).value(), engine::withRecompute(made("1f1b", 4, 8)));
    plan.pipeline.offload = 0.5;
    EXPECT_EQ(engine::scheduleOf(plan).error().message.substr(0, 19), "pipeline.recompute:");
    plan.pipeline.recompute = engine::Recompute::None;
    EXPECT_GT(engine::scheduleOf(plan).value().actionCount(), made("1f1b", 4, 8).actionCount());
}

} // namespace
