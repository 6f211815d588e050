// SPDX-License-Identifier: GPL-3.0-or-later
//
// The lab's real controls, pressed as a user presses them.
#include "tests/ui/lab/lab_panel_fixture.h"

#include "engine/plan/plan_json.h"
#include "ui/lab/run_section.h"
#include "ui/lab/stage_cost_model.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QTableView>
#include <QTest>
#include <QUndoStack>
#include <QToolTip>

#include <gtest/gtest.h>

#include <limits>

namespace stagecraft::ui {
namespace {

TEST_F(LabPanelTest, EditsThePlanThroughItsControls)
{
    the<QSpinBox>("microbatches").setValue(12);
    EXPECT_EQ(document.plan().pipeline.microbatches, 12);
    choose("schedule", "gpipe");
    EXPECT_EQ(document.plan().pipeline.schedule, "gpipe");
    the<QSpinBox>("rows").setValue(16);
    EXPECT_EQ(document.plan().model.microbatchRows, 16);
    the<QSpinBox>("steps").setValue(7);
    EXPECT_EQ(document.plan().run.steps, 7);
    the<QComboBox>("runMode").setCurrentIndex(1);
    EXPECT_EQ(document.plan().run.mode, engine::RunMode::Emulated);
    type("learningRate", "0.01");
    EXPECT_EQ(document.plan().run.learningRate, 0.01);
    type("latency", "10us");
    EXPECT_EQ(document.plan().costs.latency, 10'000);
    type("bandwidth", "25GB/s");
    EXPECT_EQ(document.plan().costs.bandwidth, 25e9);
    EXPECT_EQ(document.undoStack().count(), 8);
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(document.plan(), engine::presetPlan("hello").value());
    EXPECT_EQ(the<QSpinBox>("microbatches").value(), engine::presetPlan("hello").value().pipeline.microbatches);
}

// A window has no mpirun: the choice is there and says what to do.
TEST_F(LabPanelTest, SaysWhatStartsRunsInSeveralProcesses)
{
    const auto* modes = qobject_cast<const QStandardItemModel*>(the<QComboBox>("runMode").model());
    ASSERT_EQ(modes->rowCount(), 3);
    EXPECT_FALSE(modes->item(2)->isEnabled());
    EXPECT_TRUE(modes->item(2)->toolTip().contains("mpirun -np 4 stagecraft-cli run PLAN --mode processes"));
}

TEST_F(LabPanelTest, MakesEveryChoiceAStepOfUndo)
{
    choose("schedule", "gpipe");
    choose("schedule", "naive");
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.schedule, "gpipe");
    the<QComboBox>("check").setCurrentIndex(0);
    the<QComboBox>("check").setCurrentIndex(2);
    document.undoStack().undo();
    EXPECT_EQ(document.plan().run.check, engine::CheckMode::Off);
}

TEST_F(LabPanelTest, ShowsWhatThePlanHoldsUpToItsLimits)
{
    open("imbalanced");
    engine::Plan plan = document.plan();
    plan.pipeline.microbatches = static_cast<int>(engine::kMaxActions / 2);
    plan.run.seed = std::numeric_limits<std::uint64_t>::max();
    document.edit(plan, "plan");
    EXPECT_EQ(the<QSpinBox>("microbatches").value(), plan.pipeline.microbatches);
    EXPECT_EQ(the<QLineEdit>("seed").text(), "18446744073709551615");
    document.edit(withShape(plan, engine::kMaxStages, 1), "ranks");
    EXPECT_EQ(the<QSpinBox>("ranks").value(), engine::kMaxStages);
    document.edit(withShape(plan, 1, engine::kMaxStages), "chunks");
    EXPECT_EQ(the<QSpinBox>("chunks").value(), engine::kMaxStages);

    auto& microbatches = the<QSpinBox>("microbatches");
    microbatches.setFocus();
    microbatches.selectAll();
    QTest::keyClicks(&microbatches, "99999999999");
    EXPECT_EQ(microbatches.value(), document.plan().pipeline.microbatches);
    EXPECT_TRUE(QToolTip::text().contains("10")) << "the keys that were not taken are told: " << QToolTip::text().toStdString();
}

TEST_F(LabPanelTest, EditsAllCosts)
{
    open("imbalanced");
    type("wgradBytes", "3");
    type("overlap", "2.5ms");
    EXPECT_FALSE(the<QLineEdit>("jitterSeed").isEnabled());
    type("jitter", "5%");
    EXPECT_TRUE(the<QLineEdit>("jitterSeed").isEnabled());
    type("jitterSeed", "42");
    const engine::CostSpec& costs = document.plan().costs;
    EXPECT_EQ(costs.wgradBytes, 3);
    EXPECT_EQ(costs.overlap, traces::TimeNs{2'500'000});
    EXPECT_EQ(costs.jitter, 0.05);
    EXPECT_EQ(costs.seed, 42U);
    type("overlap", "auto");
    EXPECT_FALSE(document.plan().costs.overlap);
}

TEST_F(LabPanelTest, EditsTheMachine)
{
    open("twelve-layers"); // 4 ranks
    EXPECT_TRUE(panel.foldedSections().contains("machineBox"));
    panel.setFoldedSections({});
    EXPECT_FALSE(the<QLineEdit>("nodeLatency").isEnabled());
    EXPECT_FALSE(the<QLineEdit>("replicaBandwidth").isEnabled());
    the<QSpinBox>("ranksPerNode").setValue(2);
    EXPECT_TRUE(the<QLineEdit>("nodeLatency").isEnabled());
    type("nodeLatency", "10us");
    the<QSpinBox>("replicas").setValue(4);
    type("replicaBandwidth", "100GB/s");
    type("deviceMemory", "8"); // bytes
    type("rankScale", "1, 1, 1.5, 1");
    type("lateStart", "0, 0, 0, 5ms");
    the<QComboBox>("sendMode").setCurrentIndex(1);
    the<QComboBox>("transferPlace").setCurrentIndex(2);
    the<QComboBox>("recompute").setCurrentIndex(1);
    the<QAbstractButton>("barrier").click();
    the<QAbstractButton>("sharedLinks").click();
    const engine::MachineModel& machine = document.plan().machine;
    EXPECT_EQ(machine.ranksPerNode, 2);
    EXPECT_EQ(machine.between.latency, 10'000);
    EXPECT_EQ(machine.replicas, 4);
    EXPECT_EQ(machine.replica.bytesPerSecond, 100e9);
    EXPECT_EQ(machine.memory, 8);
    EXPECT_EQ(machine.rankScale, (std::vector<double>{1, 1, 1.5, 1}));
    EXPECT_EQ(machine.lateStart, (std::vector<traces::TimeNs>{0, 0, 0, 5'000'000}));
    EXPECT_EQ(machine.send, engine::SendMode::Rendezvous);
    EXPECT_EQ(machine.transfers, engine::TransferPlace::Ranks);
    EXPECT_TRUE(machine.barrier && machine.sharedLinks);
    EXPECT_EQ(document.plan().pipeline.recompute, engine::Recompute::Full);
    EXPECT_EQ(the<QLabel>("machineProblem").text(), "");
    type("rankScale", "1, 2");
    EXPECT_EQ(the<QLabel>("machineProblem").text(), "Rank factors and late starts have one entry per rank: 4, or none.");
    document.undoStack().undo();
    EXPECT_EQ(the<QLineEdit>("rankScale").text(), "1, 1, 1.5, 1");
}

TEST_F(LabPanelTest, ShowsAndEditsAScheduleThatIsWrittenOut)
{
    open("imbalanced");
    auto& text = the<QPlainTextEdit>("scheduleText");
    EXPECT_TRUE(text.isHidden());
    engine::Plan plan = document.plan();
    document.edit(withCustomSchedule(plan, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").value(), "schedule");
    EXPECT_FALSE(text.isHidden());
    EXPECT_EQ(the<QComboBox>("schedule").currentText(), "Custom");
    EXPECT_EQ(the<QSpinBox>("ranks").value(), 2);
    EXPECT_EQ(the<QSpinBox>("microbatches").value(), 2);
    for (const char* name : {"ranks", "chunks", "microbatches"}) {
        EXPECT_FALSE(the<QSpinBox>(name).isEnabled()) << name;
        EXPECT_TRUE(the<QSpinBox>(name).toolTip().contains("text gives")) << name;
    }
    const engine::Plan before = document.plan();
    text.setPlainText("0F0,0B0\n1F0,1X0\n");
    EXPECT_EQ(document.plan(), before);
    auto& problem = the<QLabel>("scheduleTextProblem");
    EXPECT_TRUE(problem.text().contains("line 2, cell 2")) << problem.text().toStdString();
    EXPECT_EQ(text.toPlainText(), "0F0,0B0\n1F0,1X0\n") << "stays as it was typed";
    text.setPlainText("0F0,0B0\n1F0,1B0\n");
    EXPECT_TRUE(problem.isHidden());
    EXPECT_EQ(document.plan().pipeline.microbatches, 1);
    choose("schedule", "1f1b");
    EXPECT_TRUE(text.isHidden());
    EXPECT_TRUE(document.plan().pipeline.customSchedule.empty()) << "a plan file takes it for custom only";
    EXPECT_TRUE(the<QSpinBox>("ranks").isEnabled());
}

TEST_F(LabPanelTest, MarksWhatAPresetSaidOfItself)
{
    auto& words = the<QLabel>("planDescription");
    EXPECT_TRUE(words.text().startsWith("The smallest"));
    document.edit(withShape(document.plan(), 1, 1), "ranks");
    EXPECT_TRUE(words.text().startsWith("Changed from the preset hello")) << words.text().toStdString();
    document.undoStack().undo();
    EXPECT_TRUE(words.text().startsWith("The smallest"));
}

TEST_F(LabPanelTest, ShowsWhatAPlanSaysOfItselfAsItStands)
{
    engine::Plan plan = document.plan();
    plan.description = "<b>x</b>";
    document.edit(plan, "description");
    EXPECT_EQ(the<QLabel>("planDescription").textFormat(), Qt::PlainText);
    EXPECT_TRUE(the<QLabel>("planDescription").text().contains("<b>x</b>"));
    EXPECT_EQ(the<QLabel>("modelSummary").textFormat(), Qt::PlainText);
    EXPECT_EQ(the<QLabel>("costOrigin").textFormat(), Qt::PlainText);
}

TEST_F(LabPanelTest, ScrollsSidewaysWhereItIsTooNarrow)
{
    panel.resize(180, 400);
    QCoreApplication::processEvents();
    EXPECT_TRUE(panel.horizontalScrollBar()->isVisible());
}

TEST_F(LabPanelTest, KeepsAnImpossibleNumberWithItsReasonAndOffersTheNearest)
{
    open("twelve-layers");
    choose("schedule", "interleaved");
    the<QSpinBox>("chunks").setValue(2);
    the<QSpinBox>("microbatches").setValue(9);
    EXPECT_EQ(document.plan().pipeline.microbatches, 9) << "nothing is changed silently";
    auto& problem = the<QLabel>("pipelineProblem");
    EXPECT_FALSE(problem.isHidden());
    EXPECT_TRUE(problem.text().contains("9")) << problem.text().toStdString();
    auto& fix = the<QPushButton>("pipelineFix");
    ASSERT_FALSE(fix.isHidden());
    EXPECT_EQ(fix.text(), "Use 10 micro-batches");
    fix.click();
    EXPECT_TRUE(scheduleOf(document.plan()).ok());
    EXPECT_EQ(document.plan().pipeline.microbatches, 10);
    EXPECT_TRUE(problem.isHidden());
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.microbatches, 9);
}

TEST_F(LabPanelTest, DisablesWhatCannotBeWithTheReason)
{
    auto& chunks = the<QSpinBox>("chunks");
    EXPECT_FALSE(chunks.isEnabled()) << "1F1B has one chunk per rank";
    EXPECT_TRUE(chunks.toolTip().contains("1F1B takes 1 chunk per rank")) << chunks.toolTip().toStdString();
    choose("schedule", "interleaved");
    EXPECT_TRUE(chunks.isEnabled());

    auto* sources = qobject_cast<QStandardItemModel*>(the<QComboBox>("costSource").model());
    const int measured = the<QComboBox>("costSource").findData(static_cast<int>(engine::CostSource::Measured));
    EXPECT_FALSE(sources->item(measured)->isEnabled());
    EXPECT_TRUE(sources->item(measured)->toolTip().contains("run"));

    the<QComboBox>("model").setCurrentIndex(0); // none
    EXPECT_TRUE(document.plan().model.empty());
    EXPECT_FALSE(the<QSpinBox>("rows").isEnabled());
    EXPECT_TRUE(the<QSpinBox>("rows").toolTip().contains("no model"));
}

TEST_F(LabPanelTest, ShowsWhereCostsComeFrom)
{
    EXPECT_TRUE(the<QLabel>("costOrigin").text().contains(QString::fromStdString(costsOf(document.plan()).value().origin)));
}

TEST_F(LabPanelTest, KeepsTheBackwardTheSumOfItsParts)
{
    open("imbalanced");
    const engine::Plan before = document.plan();
    type("inputGrad", "2ms");
    EXPECT_EQ(document.plan().costs.backward, before.costs.backward) << "half a split says nothing of the whole";
    const engine::Plan half = document.plan();
    type("weightGrad", "5ms");
    EXPECT_EQ(document.plan().costs.backward, 7'000'000);
    EXPECT_EQ(the<QLineEdit>("backward").text(), "7 ms");
    EXPECT_FALSE(the<QLineEdit>("backward").isEnabled());
    EXPECT_TRUE(engine::readPlan(engine::writePlan(document.plan())).ok());
    document.undoStack().undo();
    EXPECT_EQ(document.plan(), half);
    document.undoStack().undo();
    EXPECT_EQ(document.plan(), before);
}

// What the lab takes, a file keeps and an engine reads.
TEST_F(LabPanelTest, TakesNoNumberThatAPlansFileCouldNotSay)
{
    type("learningRate", "1e7");
    EXPECT_TRUE(the<QLineEdit>("learningRate").property("complains").toBool());
    type("flops", "1e7 PFLOP/s");
    EXPECT_TRUE(the<QLineEdit>("flops").property("complains").toBool());
    auto* factors = the<QTableView>("stageCosts").model();
    open("imbalanced");
    EXPECT_FALSE(factors->setData(factors->index(0, StageCostModel::Factor), "1e7"));
    EXPECT_TRUE(engine::readPlan(engine::writePlan(document.plan())).ok());
}

TEST_F(LabPanelTest, CutsTheModelAsTypedAndByTheRuleAgain)
{
    open("mlp");
    type("partition", "1, 2, 3, 2");
    EXPECT_EQ(document.plan().partition, (engine::Partition{1, 2, 3, 2}));
    auto* layers = the<QTableView>("layers").model();
    EXPECT_EQ(layers->index(0, 1).data().toString(), "0");
    EXPECT_EQ(layers->index(1, 1).data().toString(), "1");
    EXPECT_EQ(layers->index(7, 1).data().toString(), "3");
    type("partition", "1, 2, 3, 9");
    EXPECT_FALSE(the<QLabel>("modelProblem").isHidden());
    auto& rule = the<QComboBox>("partitionRule");
    rule.setCurrentIndex(rule.findData(static_cast<int>(engine::PartitionRule::Flops)));
    EXPECT_TRUE(document.plan().partition.empty());
    EXPECT_TRUE(the<QLabel>("modelProblem").isHidden());
    EXPECT_EQ(the<QLineEdit>("partition").text(), "2, 2, 2, 2");
}

// Each field says what is wrong with it, below itself, for as long as it is.
TEST_F(LabPanelTest, ComplainsForEachFieldOnItsOwn)
{
    open("imbalanced");
    type("forward", "abc");
    type("latency", "zz");
    const auto complaints = [&] {
        QStringList texts;
        for (const QLabel* label : panel.findChildren<QLabel*>())
            if (label->property("tone") == "problem" && !label->isHidden()) texts << label->text();
        return texts;
    };
    EXPECT_EQ(complaints().filter("abc").size(), 1);
    EXPECT_EQ(complaints().filter("zz").size(), 1);
    type("latency", "5us"); // an edit: the plan comes back and is shown
    EXPECT_EQ(document.plan().costs.latency, 5000);
    EXPECT_EQ(the<QLineEdit>("forward").text(), "abc");
    EXPECT_TRUE(the<QLineEdit>("forward").property("complains").toBool());
    EXPECT_EQ(complaints().filter("abc").size(), 1);
    EXPECT_TRUE(complaints().filter("zz").isEmpty());
    engine::Plan plan = document.plan();
    plan.costs.forward *= 2; // by another way: what was typed is about a value that is no more
    document.edit(plan, "costs", "");
    EXPECT_FALSE(the<QLineEdit>("forward").property("complains").toBool());
    EXPECT_TRUE(complaints().isEmpty()) << complaints().join(", ").toStdString();
}

// A schedule is judged, not made, when a control changes: 5 million actions would take a second.
TEST_F(LabPanelTest, JudgesALargeScheduleAtOnce)
{
    open("twelve-layers");
    engine::Plan plan = document.plan();
    plan.pipeline = {.schedule = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 99'999, .customSchedule = {}};
    document.edit(plan, "pipeline", "");
    EXPECT_FALSE(the<QPushButton>("pipelineFix").isHidden()) << "large numbers are helped too";
    the<QPushButton>("pipelineFix").click();
    EXPECT_TRUE(the<QLabel>("pipelineProblem").isHidden()) << the<QLabel>("pipelineProblem").text().toStdString();
}

TEST_F(LabPanelTest, MakesStagesUnevenThroughTheTable)
{
    open("imbalanced");
    auto* model = the<QTableView>("stageCosts").model();
    EXPECT_EQ(model->index(2, StageCostModel::Factor).data().toString(), "1.5");
    ASSERT_TRUE(model->setData(model->index(3, StageCostModel::Factor), "2"));
    EXPECT_EQ(document.plan().costs.stageScale, (std::vector<double>{1, 1, 1.5, 2}));
    EXPECT_FALSE(model->setData(model->index(3, StageCostModel::Factor), "-1"));
    document.undoStack().undo();
    EXPECT_EQ(document.plan().costs.stageScale, (std::vector<double>{1, 1, 1.5, 0.5}));
}

TEST_F(LabPanelTest, AsksForAnotherPlanByItsPreset)
{
    QSignalSpy chosen(&panel, &LabPanel::presetChosen);
    auto& preset = the<QComboBox>("preset");
    preset.setFocus();
    preset.setCurrentIndex(preset.findText("mlp"));
    emit preset.textActivated("mlp");
    ASSERT_EQ(chosen.size(), 1);
    EXPECT_EQ(chosen.front().front().toString(), "mlp");
}

TEST_F(LabPanelTest, ExplainsAndNamesEveryControl)
{
    int controls = 0;
    for (QWidget* widget : panel.findChildren<QWidget*>()) {
        const bool control = qobject_cast<QComboBox*>(widget) || qobject_cast<QAbstractSpinBox*>(widget) ||
                             qobject_cast<QAbstractButton*>(widget) || qobject_cast<QAbstractItemView*>(widget) ||
                             qobject_cast<QLineEdit*>(widget);
        // Parts that Qt itself puts into controls are theirs to explain.
        const bool inner = widget->objectName().startsWith("qt_") || qobject_cast<QComboBox*>(widget->parentWidget()) ||
                           qobject_cast<QAbstractItemView*>(widget->parentWidget()) ||
                           qobject_cast<QLineEdit*>(widget->parentWidget()) || widget->window() != panel.window();
        if (!control || inner || widget->focusPolicy() == Qt::NoFocus) continue;
        ++controls;
        const std::string name = widget->objectName().toStdString() + " (" + widget->metaObject()->className() + ")";
        if (!qobject_cast<QPushButton*>(widget) || widget->isVisible()) {
            EXPECT_FALSE(widget->toolTip().isEmpty()) << name;
            EXPECT_FALSE(widget->accessibleName().isEmpty()) << name;
        }
    }
    EXPECT_GT(controls, 25);
}

TEST_F(LabPanelTest, GivesEachMnemonicToOneLabel)
{
    QStringList taken;
    for (const QLabel* label : panel.findChildren<QLabel*>()) {
        const qsizetype at = label->text().indexOf('&');
        if (at < 0) continue;
        ASSERT_NE(label->buddy(), nullptr) << label->text().toStdString();
        const QString key = label->text().mid(at + 1, 1).toLower();
        EXPECT_FALSE(taken.contains(key)) << label->text().toStdString();
        taken << key;
    }
    EXPECT_GT(taken.size(), 10);
}

} // namespace
} // namespace stagecraft::ui
