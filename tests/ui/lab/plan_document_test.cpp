// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/plan_document.h"

#include "engine/plan/plan_json.h"

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

class PlanDocumentTest : public testing::Test {
protected:
    PlanDocumentTest()
    {
        document.setClock([this] { return now; });
        document.startFrom(engine::presetPlan("hello").value());
    }
    void setMicrobatches(int count)
    {
        engine::Plan plan = document.plan();
        plan.pipeline.microbatches = count;
        document.edit(plan, "micro-batches", "microbatches");
    }
    void setSteps(int count)
    {
        engine::Plan plan = document.plan();
        plan.run.steps = count;
        document.edit(plan, "steps", "steps");
    }

    std::chrono::milliseconds now{0};
    PlanDocument document;
    QTemporaryDir folder;
};

TEST_F(PlanDocumentTest, UndoesAndRedoesEdits)
{
    const engine::Plan first = document.plan();
    setMicrobatches(6);
    setSteps(9);
    document.undoStack().undo();
    EXPECT_EQ(document.plan().run.steps, first.run.steps);
    EXPECT_EQ(document.plan().pipeline.microbatches, 6);
    document.undoStack().undo();
    EXPECT_EQ(document.plan(), first);
    document.undoStack().redo();
    document.undoStack().redo();
    EXPECT_EQ(document.plan().run.steps, 9);
    EXPECT_EQ(document.undoStack().undoText(), "steps");
}

TEST_F(PlanDocumentTest, MergesEditsOfOneControlInARow)
{
    const engine::Plan first = document.plan();
    setMicrobatches(5);
    setMicrobatches(6);
    setMicrobatches(7);
    EXPECT_EQ(document.undoStack().count(), 1);
    setSteps(2);
    setMicrobatches(8);
    EXPECT_EQ(document.undoStack().count(), 3);
    document.undoStack().undo();
    document.undoStack().undo();
    document.undoStack().undo();
    EXPECT_EQ(document.plan(), first);
}

TEST_F(PlanDocumentTest, BeginsAnotherStepAfterAPause)
{
    setMicrobatches(5);
    now += PlanDocument::kTypingPause;
    setMicrobatches(6); // the pause counts from the last key
    now += PlanDocument::kTypingPause;
    setMicrobatches(7);
    EXPECT_EQ(document.undoStack().count(), 1);
    now += PlanDocument::kTypingPause + std::chrono::milliseconds(1);
    setMicrobatches(8);
    ASSERT_EQ(document.undoStack().count(), 2);
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.microbatches, 7);
}

TEST_F(PlanDocumentTest, KeepsChoicesApart)
{
    for (const char* schedule : {"gpipe", "naive"}) {
        engine::Plan plan = document.plan();
        plan.pipeline.schedule = schedule;
        document.edit(plan, "schedule");
    }
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.schedule, "gpipe");
}

TEST_F(PlanDocumentTest, ForgetsAMergedEditThatCameBackToWhereItBegan)
{
    const int before = document.plan().pipeline.microbatches;
    setMicrobatches(before + 1);
    setMicrobatches(before);
    EXPECT_EQ(document.undoStack().count(), 0);
    EXPECT_FALSE(document.modified());
}

TEST_F(PlanDocumentTest, AnEditThatChangesNothingIsNone)
{
    QSignalSpy changed(&document, &PlanDocument::changed);
    document.edit(document.plan(), "nothing", "nothing");
    EXPECT_EQ(document.undoStack().count(), 0);
    EXPECT_EQ(changed.size(), 0);
}

TEST_F(PlanDocumentTest, SavesAndOpensTheSamePlan)
{
    setMicrobatches(6);
    EXPECT_TRUE(document.modified());
    const QString file = folder.filePath("mine.plan.json");
    ASSERT_TRUE(document.saveAs(file).ok());
    EXPECT_FALSE(document.modified());
    EXPECT_EQ(document.title(), "mine.plan.json");
    const engine::Plan saved = document.plan();

    setMicrobatches(7); // not merged with the edit before the save
    EXPECT_TRUE(document.modified());
    document.undoStack().undo();
    EXPECT_FALSE(document.modified());
    EXPECT_EQ(document.plan(), saved);

    PlanDocument other;
    ASSERT_TRUE(other.open(file).ok());
    EXPECT_EQ(other.plan(), saved);
    EXPECT_EQ(other.undoStack().count(), 0);
}

TEST_F(PlanDocumentTest, KeepsWhatItHasWhenAFileCannotBeRead)
{
    setMicrobatches(6);
    const engine::Plan before = document.plan();
    QFile bad(folder.filePath("bad.plan.json"));
    ASSERT_TRUE(bad.open(QIODevice::WriteOnly));
    bad.write(R"({"stagecraft_plan": 1, "pipeline": {"ranks": -2}})");
    bad.close();
    const auto opened = document.open(bad.fileName());
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message, testing::AllOf(testing::HasSubstr("bad.plan.json"), testing::HasSubstr("ranks")));
    EXPECT_EQ(document.plan(), before);
    EXPECT_TRUE(document.modified());
    EXPECT_FALSE(document.open(folder.filePath("missing.plan.json")).ok());
}

} // namespace
} // namespace stagecraft::ui
