// SPDX-License-Identifier: GPL-3.0-or-later
//
// On which devices a run computes: the choice, what it takes along, and what stands against it.
#include "tests/ui/lab/lab_panel_fixture.h"

#include "ui/lab/run_section.h"

#include <QCheckBox>
#include <QLabel>
#include <QStandardItemModel>
#include <QUndoStack>


#include <functional>

namespace stagecraft::ui {
namespace {

using engine::DeviceKind;
using engine::Plan;

const EngineMachine kTwoGpus{.gpus = {{.name = "NVIDIA H200", .memory = 150119178240, .capability = "9.0"}, {.name = "NVIDIA T4", .memory = 15636037632, .capability = {}}},
                             .noGpus = {},
                             .told = true};
const EngineMachine kNone{.gpus = {}, .noGpus = "No GPU can be used where the engine runs: no NVIDIA driver", .told = true};

class DeviceChoiceTest : public LabPanelTest {
protected:
    DeviceChoiceTest()
    {
        open("gpt-small"); // 2 ranks
        panel.runSection().setEngineMachine(kTwoGpus);
    }
    const Plan& plan() { return document.plan(); }
    QComboBox& device() { return the<QComboBox>("device"); }
    QStandardItem& cuda()
    {
        return *qobject_cast<QStandardItemModel*>(device().model())->item(device().findData(static_cast<int>(DeviceKind::Cuda)));
    }
    std::string problem() { return the<QLabel>("runProblem").text().toStdString(); }
    void edit(const std::function<void(Plan&)>& change)
    {
        Plan next = plan();
        change(next);
        document.edit(next, "plan");
    }
    void expectGpuFields(bool enabled)
    {
        for (const char* name : {"gpus", "tf32"}) {
            EXPECT_EQ(the<QWidget>(name).isEnabled(), enabled) << name;
            EXPECT_EQ(the<QWidget>(name).toolTip().contains("\n\n"), !enabled) << name << ": the reason stands below what it is";
        }
    }
};

TEST_F(DeviceChoiceTest, PutsARunOnGpusAndBack)
{
    expectGpuFields(false);
    EXPECT_TRUE(the<QComboBox>("tracing").isEnabled()) << "operators are recorded on the CPU too";
    QTest::keyClick(&device(), Qt::Key_Down);
    EXPECT_EQ(plan().run.device, DeviceKind::Cuda);
    expectGpuFields(true);
    paste("gpus", "0, cpu");
    EXPECT_EQ(plan().run.gpus, (std::vector{0, engine::kOnCpu}));
    QTest::mouseClick(&the<QCheckBox>("tf32"), Qt::LeftButton, {}, QPoint(8, the<QCheckBox>("tf32").height() / 2));
    EXPECT_TRUE(plan().run.tf32);
    QTest::keyClick(&the<QComboBox>("tracing"), Qt::Key_Down);
    EXPECT_EQ(plan().run.tracing, traces::TraceLevel::Kernels);
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(engine::readPlan(engine::writePlan(plan())).value(), plan()) << "a file keeps it";
    EXPECT_EQ(document.undoStack().count(), 4);

    QTest::keyClick(&device(), Qt::Key_Up);
    EXPECT_EQ(plan().run.device, DeviceKind::Cpu);
    EXPECT_TRUE(plan().run.gpus.empty()) << "of a run on the CPU none is told";
    EXPECT_TRUE(checkPlan(plan()).ok());
    expectGpuFields(false);
    document.undoStack().undo();
    EXPECT_EQ(the<QLineEdit>("gpus").text(), "0, cpu");
    EXPECT_EQ(device().currentText(), "GPU (CUDA)");
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(plan(), engine::presetPlan("gpt-small").value());
    EXPECT_EQ(device().currentText(), "CPU");
    EXPECT_FALSE(the<QCheckBox>("tf32").isChecked());
}

TEST_F(DeviceChoiceTest, TakesAPrecisionOnEveryDevice)
{
    auto& precision = the<QComboBox>("precision");
    EXPECT_EQ(precision.currentText(), "float32");
    QTest::keyClick(&precision, Qt::Key_Down);
    EXPECT_EQ(plan().run.precision, engine::Precision::Bf16);
    edit([](Plan& next) { next.run.device = DeviceKind::Cuda; });
    EXPECT_TRUE(precision.isEnabled());
    EXPECT_FALSE(the<QCheckBox>("tf32").isEnabled());
    EXPECT_TRUE(the<QCheckBox>("tf32").toolTip().contains("The run multiplies in bfloat16."));
    QTest::keyClick(&precision, Qt::Key_Up);
    EXPECT_TRUE(the<QCheckBox>("tf32").isEnabled());
    while (document.undoStack().canUndo()) document.undoStack().undo();
    EXPECT_EQ(plan().run.precision, engine::Precision::Fp32);
}

TEST_F(DeviceChoiceTest, TellsOfTheGpusThatThereAre)
{
    EXPECT_TRUE(device().toolTip().endsWith("0: NVIDIA H200, 139.8 GiB, compute capability 9.0\n1: NVIDIA T4, 14.56 GiB")) << device().toolTip().toStdString();
    EXPECT_EQ(device().toolTip(), device().accessibleDescription());
    EXPECT_TRUE(cuda().isEnabled());
}

TEST_F(DeviceChoiceTest, OffersNoGpuWhereTheEngineHasNone)
{
    panel.runSection().setEngineMachine(kNone);
    EXPECT_FALSE(cuda().isEnabled());
    EXPECT_EQ(cuda().toolTip(), kNone.noGpus);
    EXPECT_TRUE(device().toolTip().contains(kNone.noGpus));
    EXPECT_TRUE(device().isEnabled());
    QTest::keyClick(&device(), Qt::Key_Down);
    EXPECT_EQ(plan().run.device, DeviceKind::Cpu);
    EXPECT_EQ(problem(), "") << "a plan for the CPU lacks nothing";
    panel.runSection().setEngineMachine(kTwoGpus);
    EXPECT_TRUE(cuda().isEnabled());
    EXPECT_EQ(cuda().toolTip(), "");
}

TEST_F(DeviceChoiceTest, LeavesAPlanForGpusAsItIsWhereThereAreNone)
{
    edit([](Plan& plan) {
        plan.run.device = DeviceKind::Cuda;
        plan.run.gpus = {1, 0};
    });
    const Plan before = plan();
    panel.runSection().setEngineMachine(kNone);
    EXPECT_EQ(plan(), before);
    EXPECT_EQ(device().currentText(), "GPU (CUDA)");
    EXPECT_EQ(problem(), "No GPU can be used where the engine runs: no NVIDIA driver. Choose the device CPU, or an engine on a host that has a GPU.");
    expectGpuFields(true);
    QTest::keyClick(&device(), Qt::Key_Up);
    EXPECT_EQ(plan().run.device, DeviceKind::Cpu);
    EXPECT_EQ(problem(), "");
}

TEST_F(DeviceChoiceTest, LeavesNoGapWhereAReasonStood)
{
    edit([](Plan& plan) { plan.run.device = DeviceKind::Cuda; });
    QCoreApplication::processEvents(); // layouts
    const auto& box = the<QWidget>("runBox");
    const int before = box.height();
    panel.runSection().setEngineMachine(kNone);
    QCoreApplication::processEvents();
    EXPECT_GT(box.height(), before);
    panel.runSection().setEngineMachine(kTwoGpus);
    EXPECT_TRUE(QTest::qWaitFor([&] { return box.height() == before; })) << box.height() << " px, not " << before;
}

TEST_F(DeviceChoiceTest, SaysWhichGpusOfThePlanThereAreNot)
{
    edit([](Plan& plan) { plan.run.device = DeviceKind::Cuda; });
    paste("gpus", "0");
    EXPECT_EQ(problem(), "1 GPU given for 2 ranks: one for each, or none.");
    paste("gpus", "0, 2");
    EXPECT_EQ(problem(), "There is no GPU 2 where the engine runs; it has 2 GPUs, numbered from 0.");
    paste("gpus", "0, x");
    EXPECT_TRUE(the<QLineEdit>("gpus").property("complains").toBool());
    paste("gpus", "");
    EXPECT_EQ(problem(), "");
    edit([](Plan& plan) { plan.machine.replicas = 2; });
    EXPECT_EQ(problem(), "");
    paste("gpus", "0, 1");
    EXPECT_EQ(problem(), "2 GPUs given for 4 ranks: one for each, or none.");
}

} // namespace
} // namespace stagecraft::ui
