// SPDX-License-Identifier: GPL-3.0-or-later
#include "test_plans.h"

#include "ui/window/order_editor.h"

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using testing::HasSubstr;

// GPipe with two ranks and two micro-batches: 0F0 0F1 0B0 0B1 above 1F0 1F1 1B0 1B1.
class OrderEditing : public testing::Test {
protected:
    OrderEditing() : editor(bench)
    {
        bench.document().startFrom(planOf(pipelineOf("gpipe", 2, 1, 2)));
        QObject::connect(&editor, &OrderEditor::refused, [this](const QString& text) { refusals << text; });
    }

    static TimelineItem block(int rank, std::uint32_t index)
    {
        return {.kind = TimelineItem::Kind::Slice, .source = 0, .segment = 0, .slice = {traces::LaneId{rank}, index}};
    }
    const engine::PipelineSpec& pipeline() { return bench.document().plan().pipeline; }
    const Simulation& simulation() { return bench.simulation().simulation(); }

    Workbench bench;
    OrderEditor editor;
    QStringList refusals;
};

TEST(MovedOrder, TakesOneActionElsewhere)
{
    const engine::Schedule schedule = engine::parseSchedule("0F0,0F1,0F2,0B0,0B1,0B2\n").value();
    EXPECT_EQ(toText(withMoved(schedule, traces::Rank{0}, 3, 1)), "0F0,0B0,0F1,0F2,0B1,0B2\n");
    EXPECT_EQ(toText(withMoved(schedule, traces::Rank{0}, 1, 4)), "0F0,0F2,0B0,0F1,0B1,0B2\n");
    EXPECT_EQ(toText(withMoved(schedule, traces::Rank{0}, 0, 6)), "0F1,0F2,0B0,0B1,0B2,0F0\n");
    EXPECT_EQ(withMoved(schedule, traces::Rank{0}, 2, 2), schedule);
    EXPECT_EQ(withMoved(schedule, traces::Rank{0}, 2, 3), schedule);
}

TEST_F(OrderEditing, MakesTheOrderTheSchedule)
{
    ASSERT_TRUE(editor.mayMove(block(1, 2)));
    EXPECT_TRUE(editor.judge(block(1, 2), 1).legal);
    editor.move(block(1, 2), 1); // 1B0 before 1F1: what 1F1B does
    EXPECT_EQ(pipeline().schedule, "custom");
    EXPECT_EQ(pipeline().customSchedule, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    EXPECT_EQ(simulation().trace->sliceName({traces::LaneId{1}, 1}), "1B0") << "simulated at once";
    EXPECT_TRUE(refusals.isEmpty());
    bench.document().undoStack().undo();
    EXPECT_EQ(pipeline().schedule, "gpipe");
    EXPECT_EQ(simulation().trace->sliceName({traces::LaneId{1}, 1}), "1F1");
    bench.document().undoStack().redo();
    EXPECT_EQ(pipeline().schedule, "custom");
}

TEST_F(OrderEditing, MovesBehindTheLastBlock)
{
    editor.move(block(1, 2), 4); // 1B0 behind 1B1; rank 0 then waits for it
    EXPECT_EQ(pipeline().customSchedule, "0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0\n");
}

TEST_F(OrderEditing, SaysWhatAnIllegalPlaceBreaks)
{
    const BlockMover::Verdict verdict = editor.judge(block(0, 2), 0); // 0B0 before its own forward
    EXPECT_FALSE(verdict.legal);
    EXPECT_FALSE(verdict.taken);
    EXPECT_THAT(verdict.message.toStdString(), HasSubstr("rank 0, position 0: 0B0 comes before 0F0"));
    editor.setKeepsIllegal(true);
    EXPECT_FALSE(editor.judge(block(0, 2), 0).taken) << "no step can run that";
    editor.move(block(0, 2), 0);
    EXPECT_EQ(pipeline().schedule, "gpipe");
    ASSERT_EQ(refusals.size(), 1);
    EXPECT_THAT(refusals.front().toStdString(), HasSubstr("The order stays as it was"));
}

// Rank 0 waits with 0B0 for 1B0, and rank 1 with 1F1 for 0F1: only the first forwards run.
TEST_F(OrderEditing, KeepsADeadlockOnPurpose)
{
    BlockMover::Verdict verdict = editor.judge(block(0, 2), 1);
    EXPECT_FALSE(verdict.legal);
    EXPECT_FALSE(verdict.taken);
    EXPECT_THAT(verdict.message.toStdString(), HasSubstr("rank 0 cannot start 0B0 before 1B0 of rank 1"));
    editor.move(block(0, 2), 1);
    EXPECT_EQ(pipeline().schedule, "gpipe");
    EXPECT_EQ(refusals.size(), 1);

    editor.setKeepsIllegal(true);
    verdict = editor.judge(block(0, 2), 1);
    EXPECT_TRUE(verdict.taken);
    editor.move(block(0, 2), 1);
    EXPECT_EQ(pipeline().customSchedule, "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    EXPECT_TRUE(bench.simulation().problem().isEmpty());
    EXPECT_EQ(simulation().deadlock.size(), 2U);
    EXPECT_EQ(simulation().trace->sliceCount(), 2U);
    const std::vector<StuckRank>& stuck = bench.scene().sources().front().stuck;
    ASSERT_EQ(stuck.size(), 2U);
    EXPECT_EQ(stuck[0].text, "0B0 waits for 1B0");
    EXPECT_EQ(stuck[0].waitsFor, traces::Rank{1});
    EXPECT_EQ(stuck[1].text, "1F1 waits for 0F1");

    // out of it again, by undo or by hand: the block that cannot start is not to be seen, the one before it is
    editor.move(block(0, 0), 1);
    bench.document().undoStack().undo();
    EXPECT_TRUE(simulation().deadlock.empty());
}

TEST_F(OrderEditing, LeavesAloneWhatIsNoBlockOfTheSimulation)
{
    TimelineItem gap = block(0, 0);
    gap.kind = TimelineItem::Kind::Gap;
    EXPECT_FALSE(editor.mayMove(gap));
    TimelineItem other = block(0, 0);
    other.source = 1;
    EXPECT_FALSE(editor.mayMove(other));
    engine::Plan broken = bench.document().plan();
    broken.pipeline.schedule = "interleaved"; // needs two chunks: the timeline shows the plan before
    bench.document().edit(broken, "schedule");
    ASSERT_FALSE(bench.simulation().problem().isEmpty());
    EXPECT_FALSE(editor.mayMove(block(0, 0)));
}

// A file may hold an order that deadlocks: it is opened, and shown as far as it runs.
TEST(ADeadlockedSchedule, IsShownAsFarAsItRuns)
{
    const engine::Plan plan =
        engine::withCustomSchedule(planOf(pipelineOf("1f1b", 2, 1, 2)), "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n").value();
    const Simulation simulation = simulatePlan(plan).value();
    ASSERT_EQ(simulation.deadlock.size(), 2U);
    EXPECT_EQ(deadlockText(simulation.deadlock).toStdString(),
              "Deadlock: rank 0 cannot start 0B0 before 1B0 of rank 1, rank 1 cannot start 1F1 before 0F1 of rank 0.");
    EXPECT_EQ(simulation.trace->sliceCount(), 2U);
    EXPECT_EQ(simulation.figures.makespan, 2'000'000);
}

} // namespace
} // namespace stagecraft::ui
