// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a run goes by beside its mode and steps: training, data, checkpoints, the engine's insides; and how layers are given out.
#include "tests/ui/lab/lab_panel_fixture.h"

#include "engine/model/layout.h"
#include "engine/plan/partition_rules.h"
#include "ui/bridge/text.h"
#include "ui/lab/path_field.h"
#include "ui/lab/quantities.h"

#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QUndoStack>

#include <functional>

namespace stagecraft::ui {
namespace {

using engine::DataSource;
using engine::HandoffKind;
using engine::Plan;

class RunSectionsTest : public LabPanelTest {
protected:
    RunSectionsTest()
    {
        panel.setFoldedSections({});
        open("gpt-text"); // 2 ranks, an embedding and a head, a text
    }
    const Plan& plan() { return document.plan(); }
    void edit(const std::function<void(Plan&)>& change)
    {
        Plan next = plan();
        change(next);
        document.edit(next, "plan");
    }
    template <class Enum>
    void pick(const char* box, Enum value)
    {
        auto& combo = the<QComboBox>(box);
        const int row = combo.findData(static_cast<int>(value));
        ASSERT_GE(row, 0) << box;
        combo.setCurrentIndex(row);
    }
    std::string said(const char* label) { return the<QLabel>(label).text().toStdString(); }
    // Disabled, with the reason in its tooltip.
    void expectOff(const char* name, const char* reason)
    {
        EXPECT_FALSE(the<QWidget>(name).isEnabled()) << name;
        EXPECT_TRUE(the<QWidget>(name).toolTip().contains(reason)) << name << ": " << the<QWidget>(name).toolTip().toStdString();
    }
    void expectOn(const char* name)
    {
        EXPECT_TRUE(the<QWidget>(name).isEnabled()) << name << ": " << the<QWidget>(name).toolTip().toStdString();
    }
    // What the controls have made of the plan is what its file says.
    void expectAFileKeepsIt()
    {
        const auto again = engine::readPlan(engine::writePlan(plan()));
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(again.value(), plan());
    }
    QStandardItem& item(const char* box, int data)
    {
        auto& combo = the<QComboBox>(box);
        return *qobject_cast<QStandardItemModel*>(combo.model())->item(combo.findData(data));
    }
};

TEST_F(RunSectionsTest, FoldsAwayAtFirstWhatMostPlansDoWithout)
{
    const LabPanel fresh(document);
    EXPECT_EQ(fresh.foldedSections().join(' ').toStdString(), "machineBox trainingBox dataBox checkpointBox engineBox");
}

TEST_F(RunSectionsTest, EditsTheTraining)
{
    pick("optimizer", engine::OptimizerKind::Momentum);
    paste("momentum", "0.8");
    paste("weightDecay", "0.1");
    paste("clipNorm", "1.5");
    paste("lossScale", "2^16");
    pick("rateCourse", engine::RateCourse::Linear);
    the<QSpinBox>("warmup").setValue(3);
    EXPECT_EQ(plan().run.optimizer, engine::OptimizerKind::Momentum);
    EXPECT_EQ(plan().run.momentum, 0.8);
    EXPECT_EQ(plan().run.weightDecay, 0.1);
    EXPECT_EQ(plan().run.clipNorm, 1.5);
    EXPECT_EQ(plan().run.lossScale, 65536);
    EXPECT_EQ(plan().run.rateCourse, engine::RateCourse::Linear);
    EXPECT_EQ(plan().run.warmupSteps, 3);
    expectAFileKeepsIt();
    paste("lossScale", "3");
    EXPECT_TRUE(the<QLineEdit>("lossScale").property("complains").toBool());
    EXPECT_EQ(plan().run.lossScale, 65536);
    paste("weightDecay", "auto");
    paste("clipNorm", "none");
    EXPECT_FALSE(plan().run.weightDecay);
    EXPECT_EQ(plan().run.clipNorm, 0);
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(plan(), engine::presetPlan("gpt-text").value());
    EXPECT_EQ(the<QLineEdit>("weightDecay").text(), "auto");
    EXPECT_EQ(the<QLineEdit>("clipNorm").text(), "none");
    EXPECT_EQ(the<QLineEdit>("lossScale").text(), "1");
}

TEST_F(RunSectionsTest, OffersOnlyTheTrainingThatThereIs)
{
    expectOff("momentum", "Only SGD with momentum");
    expectOn("clipNorm");
    choose("schedule", "pipedream");
    expectOff("clipNorm", "PipeDream updates a stage when others have no gradients yet");
    choose("schedule", "1f1b");
    paste("clipNorm", "1");
    choose("schedule", "pipedream");
    expectOn("clipNorm"); // to be taken out
    EXPECT_NE(said("trainingProblem"), "");
    paste("clipNorm", "none");
    EXPECT_EQ(said("trainingProblem"), "");
    choose("schedule", "forward-only");
    for (const char* name : {"optimizer", "learningRate", "rateCourse", "warmup", "momentum", "weightDecay", "clipNorm", "lossScale"})
        expectOff(name, "nothing is trained");
}

TEST_F(RunSectionsTest, ChoosesTheData)
{
    EXPECT_EQ(the<QLineEdit>("dataPath").placeholderText(), "the program's own text");
    expectOff("dataTargets", "next tokens");
    expectOff("dataTargetsBrowse", "next tokens");
    pick("dataTokens", engine::TokenUnit::Byte);
    paste("dataPath", "/texts/a.txt");
    EXPECT_EQ(plan().data, (engine::DataSpec{.source = DataSource::Text, .path = "/texts/a.txt", .targets = {}, .tokens = engine::TokenUnit::Byte}));
    expectAFileKeepsIt();
    pick("dataSource", DataSource::Synthetic);
    EXPECT_EQ(plan().data, engine::DataSpec{}) << "the file of a text is none of random data";
    for (const char* name : {"dataPath", "dataPathBrowse", "dataTargets", "dataTokens"}) expectOff(name, "made from the seed");
    document.undoStack().undo();
    EXPECT_EQ(the<QLineEdit>("dataPath").text(), "/texts/a.txt");
}

TEST_F(RunSectionsTest, TakesSamplesFromFilesThatAreChosen)
{
    open("resnet");
    pick("dataSource", DataSource::Idx);
    EXPECT_EQ(said("dataProblem"), "data.path: it is missing; give the file of the inputs");
    expectOff("dataTokens", "no tokens");
    QString title;
    const auto answer = [&](const char* path) {
        return [&title, path](const QString& asked, const QString&) {
            title = asked;
            return QString(path);
        };
    };
    the<PathField>("dataPathField").setChooser(answer("/mnist/train-images-idx3-ubyte"));
    the<QPushButton>("dataPathBrowse").click();
    EXPECT_EQ(title, "File");
    EXPECT_EQ(said("dataProblem"), "data.targets: it is missing; give the file of the targets");
    the<PathField>("dataTargetsField").setChooser(answer("/mnist/train-labels-idx1-ubyte"));
    the<QPushButton>("dataTargetsBrowse").click();
    EXPECT_EQ(said("dataProblem"), "");
    EXPECT_EQ(plan().data.path, "/mnist/train-images-idx3-ubyte");
    EXPECT_EQ(the<QLineEdit>("dataTargets").text(), "/mnist/train-labels-idx1-ubyte");
    expectAFileKeepsIt();
    the<PathField>("dataPathField").setChooser(answer("")); // changed their mind
    the<QPushButton>("dataPathBrowse").click();
    EXPECT_EQ(plan().data.path, "/mnist/train-images-idx3-ubyte");
    pick("dataSource", DataSource::Text);
    EXPECT_TRUE(said("dataProblem").starts_with("data.source: a text needs")) << said("dataProblem");
}

TEST_F(RunSectionsTest, KeepsCheckpointsAndGoesOnFromOne)
{
    expectOff("checkpointEvery", "No folder");
    EXPECT_EQ(the<QSpinBox>("checkpointEvery").text(), "the last step");
    the<PathField>("checkpointField").setChooser([](const QString&, const QString&) { return QString("/runs/a"); });
    the<QPushButton>("checkpointBrowse").click();
    the<QSpinBox>("checkpointEvery").setValue(10);
    paste("resume", " /runs/b ");
    EXPECT_EQ(plan().run.checkpoint, "/runs/a");
    EXPECT_EQ(plan().run.checkpointEvery, 10);
    EXPECT_EQ(plan().run.resume, "/runs/b") << "blanks around a path are nobody's";
    expectAFileKeepsIt();
    EXPECT_EQ(said("checkpointProblem"), "");
    paste("checkpoint", "");
    EXPECT_EQ(said("checkpointProblem"), "Name the folder that they are written to, or write none.");
    expectOn("checkpointEvery");
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(the<QLineEdit>("checkpoint").text(), "");
}

TEST_F(RunSectionsTest, SaysWhereThereAreNoCheckpoints)
{
    edit([](Plan& plan) { plan.run.mode = engine::RunMode::Processes; });
    for (const char* name : {"checkpoint", "checkpointBrowse", "resume", "resumeBrowse"}) expectOn(name); // rank 0 writes what all hold
    edit([](Plan& plan) {
        plan.run.mode = engine::RunMode::Threads;
        plan.machine.replicas = 2;
        plan.pipeline.sharding = engine::Sharding::Zero3;
    });
    expectOn("checkpoint"); // of what replicas divide as a whole
    edit([](Plan& plan) {
        plan.machine.replicas = 1;
        plan.pipeline.schedule = "forward-only";
    });
    expectOff("checkpoint", "forward alone");
    expectOn("resume"); // inference goes by trained weights
    edit([](Plan& plan) { plan.run.checkpoint = "/runs/a"; });
    expectOn("checkpoint"); // to be taken out
    EXPECT_NE(said("checkpointProblem"), "");
}

TEST_F(RunSectionsTest, ChoosesTheHandOff)
{
    expectOff("handoffDepth", "Boxes have a place");
    pick("handoff", HandoffKind::Ring);
    EXPECT_EQ(the<QSpinBox>("handoffDepth").text(), "for all");
    the<QSpinBox>("handoffDepth").setValue(2);
    EXPECT_EQ(plan().run.handoff, HandoffKind::Ring);
    EXPECT_EQ(plan().run.handoffDepth, 2);
    expectAFileKeepsIt();
    the<QComboBox>("runMode").setCurrentIndex(1);
    expectOff("handoff", "mode emulated");
    expectOff("handoffDepth", "mode emulated");
    the<QComboBox>("runMode").setCurrentIndex(0);
    pick("handoff", HandoffKind::Boxes);
    EXPECT_EQ(plan().run.handoffDepth, 0) << "boxes with room of another number would be refused";
    expectAFileKeepsIt();
}

TEST_F(RunSectionsTest, TellsActivationsAndSlowsStages)
{
    pick("activationAccount", engine::ActivationAccount::SavedTensors);
    EXPECT_EQ(plan().run.activations, engine::ActivationAccount::SavedTensors);
    paste("slowdown", "1, 2");
    EXPECT_EQ(plan().run.slowdown, (std::vector<double>{1, 2}));
    expectAFileKeepsIt();
    paste("slowdown", "1, 2, 3");
    EXPECT_EQ(said("engineProblem"), "Slow stages: one factor for each of the 2 stages is needed, or none.");
    paste("slowdown", "0.5, 1");
    EXPECT_TRUE(the<QLineEdit>("slowdown").property("complains").toBool());
    paste("slowdown", "");
    EXPECT_EQ(said("engineProblem"), "");
    EXPECT_TRUE(plan().run.slowdown.empty());
    edit([](Plan& plan) { plan.run.mode = engine::RunMode::Processes; });
    expectOff("activationAccount", "one process");
}

TEST_F(RunSectionsTest, TiesTheEmbeddings)
{
    auto& tied = the<QCheckBox>("tied");
    expectOn("tied");
    tied.click();
    EXPECT_TRUE(plan().model.tiedEmbeddings);
    EXPECT_EQ(the<QComboBox>("model").currentText(), "gpt-text") << "it is no other model";
    expectAFileKeepsIt();
    choose("schedule", "pipedream");
    expectOn("tied"); // to be taken out
    tied.click();
    expectOff("tied", "would go apart");
    open("mlp");
    expectOff("tied", "an embedding as the first layer");
    the<QComboBox>("model").setCurrentIndex(0);
    expectOff("tied", "no model");
}

TEST_F(RunSectionsTest, GivesLayersOutByARule)
{
    open("gpt-small"); // an embedding, eight blocks, a head; 2 ranks
    const auto inUse = [&] { return partitionOf(plan()).value(); };
    for (const engine::PartitionRule rule : {engine::PartitionRule::Uniform, engine::PartitionRule::Parameters, engine::PartitionRule::Memory,
                                             engine::PartitionRule::Flops}) {
        pick("partitionRule", rule);
        EXPECT_EQ(plan().partitionRule, rule);
        EXPECT_TRUE(plan().partition.empty());
        EXPECT_EQ(the<QLineEdit>("partition").text().toStdString(), showPartition(inUse()));
        EXPECT_EQ(said("modelProblem"), "");
        expectAFileKeepsIt();
    }
    const engine::Partition before = inUse();
    the<QComboBox>("partitionRule").setCurrentIndex(the<QComboBox>("partitionRule").findData(-1));
    EXPECT_EQ(plan().partition, before) << "by hand it stays what it was";
    EXPECT_TRUE(the<QLineEdit>("partition").toolTip().contains(toQt(engine::layoutOf(plan().model, before))));
    paste("partition", "4, 6");
    EXPECT_EQ(plan().partition, (engine::Partition{4, 6}));
    EXPECT_EQ(the<QComboBox>("partitionRule").currentData().toInt(), -1);
    pick("partitionRule", engine::PartitionRule::Uniform);
    EXPECT_EQ(the<QLineEdit>("partition").text(), "5, 5");
}

// As --pipeline-model-parallel-layout has it.
TEST_F(RunSectionsTest, ReadsALayoutOfMegatron)
{
    open("gpt-small");
    paste("partition", "Et*2|t*6,L");
    EXPECT_EQ(plan().partition, (engine::Partition{3, 7}));
    EXPECT_EQ(the<QLineEdit>("partition").text(), "3, 7");
    expectAFileKeepsIt();
    paste("partition", "Et*2|t*5,L");
    EXPECT_TRUE(the<QLineEdit>("partition").property("complains").toBool());
    EXPECT_EQ(plan().partition, (engine::Partition{3, 7}));
}

TEST_F(RunSectionsTest, GivesLayersOutByWhatARunMeasured)
{
    open("gpt-small");
    const int byTime = static_cast<int>(engine::PartitionRule::Time);
    EXPECT_FALSE(item("partitionRule", byTime).isEnabled());
    EXPECT_TRUE(item("partitionRule", byTime).toolTip().contains("Nothing was measured yet"));
    edit([](Plan& plan) {
        plan.partition = {5, 5};
        plan.costs.source = engine::CostSource::Measured;
        plan.costs.measured.assign(2, {});
        plan.costs.measured[0].forward = 1'000'000; // the second stage takes three times as long
        plan.costs.measured[0].backward = 2'000'000;
        plan.costs.measured[1].forward = 3'000'000;
        plan.costs.measured[1].backward = 6'000'000;
    });
    EXPECT_TRUE(item("partitionRule", byTime).isEnabled());
    EXPECT_TRUE(item("partitionRule", byTime).toolTip().contains("costs that a run measured"));
    pick("partitionRule", engine::PartitionRule::Time);
    EXPECT_EQ(plan(), engine::partitionedByTime(document.plan(), document.plan()).value()) << "once more changes nothing";
    ASSERT_EQ(plan().partition.size(), 2U);
    EXPECT_GT(plan().partition[0], 5);
    EXPECT_EQ(plan().costs.source, engine::CostSource::Measured);
    EXPECT_EQ(the<QComboBox>("partitionRule").currentData().toInt(), -1) << "it is a list now";
    pick("partitionRule", engine::PartitionRule::Time); // has nothing to change
    EXPECT_EQ(the<QComboBox>("partitionRule").currentData().toInt(), -1);
}

// Costs that were measured with other layers on the stages would be said of the wrong ones.
TEST_F(RunSectionsTest, DropsMeasuredCostsWithTheirPartition)
{
    open("gpt-small");
    edit([](Plan& plan) {
        plan.partition = {5, 5};
        plan.costs.source = engine::CostSource::Measured;
        plan.costs.measured.assign(2, {.forward = 1'000'000, .backward = 2'000'000});
    });
    paste("partition", "3, 7");
    EXPECT_TRUE(plan().costs.measured.empty());
    document.undoStack().undo();
    EXPECT_EQ(plan().costs.measured.size(), 2U);
}

TEST_F(RunSectionsTest, HasNoRuleWithoutAModel)
{
    open("gpt-small");
    pick("partitionRule", engine::PartitionRule::Memory);
    the<QComboBox>("model").setCurrentIndex(0);
    expectOff("partitionRule", "no model");
    EXPECT_TRUE(checkPlan(plan()).ok()) << checkPlan(plan()).error().message;
}

} // namespace
} // namespace stagecraft::ui
