// SPDX-License-Identifier: GPL-3.0-or-later
//
// What only some schedules take: shown where it has an effect, edited, judged.
#include "tests/ui/lab/lab_panel_fixture.h"

#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <QLabel>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QUndoStack>

namespace stagecraft::ui {
namespace {

class FamilyOptionsTest : public LabPanelTest {
protected:
    FamilyOptionsTest() { open("twelve-layers"); } // 4 ranks
    void start(const char* schedule, int chunks = 1)
    {
        engine::Plan plan = withShape(document.plan(), 4, chunks);
        plan.model = {}; // it would have a say in what is kept
        plan.pipeline.schedule = schedule;
        plan.pipeline.microbatches = 8;
        document.startFrom(plan);
    }
    bool hides(const char* name) { return the<QWidget>(name).isHidden(); }
    QString problem() { return the<QLabel>("pipelineProblem").text(); }
    void chooseAt(const char* box, int row) { the<QComboBox>(box).setCurrentIndex(row); }
};

TEST_F(FamilyOptionsTest, ShowsWhatTheFamilyTakes)
{
    const auto shown = [&](const char* schedule, int chunks) {
        start(schedule, chunks);
        QStringList names;
        for (const char* name : {"concatenation", "group", "memoryLimit", "slicing", "verticalSync"})
            if (!hides(name)) names << name;
        EXPECT_FALSE(hides("offload") || hides("sharding"));
        return names.join(' ').toStdString();
    };
    EXPECT_EQ(shown("1f1b", 1), "");
    EXPECT_EQ(shown("chimera", 1), "concatenation");
    EXPECT_EQ(shown("interleaved", 2), "group");
    EXPECT_EQ(shown("pipedream-2bw", 1), "group");
    EXPECT_EQ(shown("pipedream", 1), "verticalSync");
    EXPECT_EQ(shown("zb-auto", 1), "memoryLimit");
    EXPECT_EQ(shown("zb-v-auto", 2), "memoryLimit");
    EXPECT_EQ(shown("seq1f1b", 1), "slicing");
}

TEST_F(FamilyOptionsTest, ConcatenatesUnits)
{
    start("chimera");
    chooseAt("concatenation", 1);
    EXPECT_EQ(document.plan().pipeline.concatenation, engine::Concatenation::Doubling);
    chooseAt("concatenation", 2);
    EXPECT_EQ(document.plan().pipeline.concatenation, engine::Concatenation::Halving);
    EXPECT_EQ(problem(), "");
    document.undoStack().undo();
    EXPECT_EQ(the<QComboBox>("concatenation").currentIndex(), 1);
    document.undoStack().redo();
    EXPECT_EQ(the<QComboBox>("concatenation").currentIndex(), 2);
}

TEST_F(FamilyOptionsTest, GroupsMicroBatchesAndSaysWhatFits)
{
    start("interleaved", 2);
    auto& group = the<QSpinBox>("group");
    EXPECT_EQ(group.text(), "auto");
    group.setValue(5);
    EXPECT_EQ(document.plan().pipeline.group, 5);
    EXPECT_TRUE(problem().contains("the nearest size that fits is 4")) << problem().toStdString();
    group.setValue(4);
    EXPECT_EQ(problem(), "");
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(group.text(), "auto");
}

// The limit is one of bytes: only the plan's costs can say whether it is too low.
TEST_F(FamilyOptionsTest, JudgesAMemoryLimitByTheCosts)
{
    start("zb-auto");
    paste("activationBytes", "1GiB");
    paste("memoryLimit", "512MiB");
    EXPECT_EQ(document.plan().pipeline.memoryLimit, traces::Bytes{512} << 20);
    EXPECT_TRUE(problem().contains("one micro-batch already keeps 1 GiB; the nearest is 1GiB")) << problem().toStdString();
    paste("activationBytes", "256MiB"); // another section's field
    EXPECT_EQ(problem(), "");
    paste("memoryLimit", "1 x");
    EXPECT_TRUE(the<QLineEdit>("memoryLimit").property("complains").toBool());
    choose("schedule", "1f1b");
    EXPECT_FALSE(the<QLineEdit>("memoryLimit").property("complains").toBool()) << "and no complaint is left of a field that is gone";
    choose("schedule", "zb-auto");
    EXPECT_EQ(the<QLineEdit>("memoryLimit").text(), "512 MiB");
    paste("memoryLimit", "auto");
    EXPECT_EQ(document.plan().pipeline.memoryLimit, 0);
}

TEST_F(FamilyOptionsTest, CutsSequencesIntoSlicesOfOneTime)
{
    start("seq1f1b");
    EXPECT_FALSE(the<QComboBox>("slicing").isEnabled());
    EXPECT_TRUE(the<QComboBox>("slicing").toolTip().contains("one slice"));
    EXPECT_FALSE(the<QLineEdit>("attentionShare").isEnabled());
    EXPECT_TRUE(the<QLineEdit>("attentionShare").toolTip().contains("one slice"));
    the<QSpinBox>("slices").setValue(2);
    EXPECT_EQ(the<QLineEdit>("attentionShare").text(), "auto");
    paste("attentionShare", "50%");
    EXPECT_EQ(document.plan().costs.attentionShare, 0.5);
    const auto makespan = [&] {
        const traces::Trace trace = simulate(scheduleOf(document.plan()).value(), costsOf(document.plan()).value()).value();
        return traces::stepFigures(trace, traces::Step{0}).value().makespan;
    };
    const traces::TimeNs unlike = makespan();
    chooseAt("slicing", 1);
    EXPECT_EQ(document.plan().pipeline.slicing, engine::Slicing::Balanced);
    EXPECT_LT(makespan(), unlike);
    paste("attentionShare", "101%");
    EXPECT_EQ(the<QLineEdit>("attentionShare").accessibleDescription(), "a share of 101% is not allowed; 0 % to 100 %");
    EXPECT_EQ(document.plan().costs.attentionShare, 0.5);
    paste("attentionShare", "auto");
    EXPECT_FALSE(document.plan().costs.attentionShare);
}

TEST_F(FamilyOptionsTest, OffloadsAShareOfActivations)
{
    start("1f1b");
    paste("offload", "50%");
    EXPECT_EQ(document.plan().pipeline.offload, 0.5);
    EXPECT_EQ(problem(), "");
    chooseAt("recompute", 1);
    EXPECT_TRUE(problem().contains("take one of the two")) << problem().toStdString();
    chooseAt("recompute", 0);
    paste("offload", "150%");
    EXPECT_EQ(document.plan().pipeline.offload, 0.5);
    EXPECT_EQ(the<QLineEdit>("offload").accessibleDescription(), "a share of 150% is not allowed; 0 % to 100 %");
    start("bpipe");
    EXPECT_FALSE(the<QLineEdit>("offload").isEnabled());
    EXPECT_TRUE(the<QLineEdit>("offload").toolTip().contains("BPipe"));
}

TEST_F(FamilyOptionsTest, DividesWhatReplicasHold)
{
    start("1f1b");
    chooseAt("sharding", 3);
    EXPECT_EQ(document.plan().pipeline.sharding, engine::Sharding::Zero3);
    choose("schedule", "pipedream");
    EXPECT_TRUE(problem().contains("updates its weights within a step")) << problem().toStdString();
    auto* levels = qobject_cast<QStandardItemModel*>(the<QComboBox>("sharding").model());
    EXPECT_TRUE(levels->item(1)->isEnabled());
    EXPECT_FALSE(levels->item(3)->isEnabled());
    EXPECT_TRUE(levels->item(3)->toolTip().contains("within a step"));
    chooseAt("sharding", 1);
    EXPECT_EQ(problem(), "");
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.sharding, engine::Sharding::Zero3);
}

} // namespace
} // namespace stagecraft::ui
