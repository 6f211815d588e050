// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/run_section.h"

#include "engine/plan/gpu_list.h"
#include "ui/bridge/plain_tip.h"
#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/quantities.h"
#include "ui/lab/trouble_box.h"

#include <QFormLayout>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using engine::CheckMode;
using engine::DeviceKind;
using engine::Plan;
using engine::Precision;
using engine::RunMode;
using traces::TraceLevel;

namespace {

QString deviceTip() { return RunSection::tr("Where tensors live and actions compute."); }

} // namespace

QString troubleWithGpus(const Plan& plan, const EngineMachine& machine)
{
    if (plan.run.device != DeviceKind::Cuda) return {};
    if (!machine.noGpus.isEmpty())
        return machine.told ? RunSection::tr("%1. Choose the device CPU, or an engine on a host that has a GPU.").arg(machine.noGpus) : machine.noGpus;
    const auto ranks = static_cast<std::size_t>(plan.pipeline.ranks) * static_cast<std::size_t>(plan.machine.replicas);
    const std::vector<int>& gpus = plan.run.gpus;
    if (!gpus.empty() && gpus.size() != ranks)
        return RunSection::tr("%1 given for %2: one for each, or none.").arg(counted(gpus.size(), "GPU"), counted(ranks, "rank"));
    const int highest = gpus.empty() ? engine::kOnCpu : *std::max_element(gpus.begin(), gpus.end());
    if (highest >= static_cast<int>(machine.gpus.size()))
        return RunSection::tr("There is no GPU %1 where the engine runs; it has %2, numbered from 0.").arg(highest).arg(counted(machine.gpus.size(), "GPU"));
    return {};
}

RunSection::RunSection(QWidget* parent)
    : LabSection(parent), mode_(newCombo()), device_(newCombo()),
      gpus_(new ValueEdit<std::vector<int>>(engine::parseGpus, engine::gpusText)), tracing_(newCombo()), precision_(newCombo()),
      tf32_(new QCheckBox(tr("Multiply in TF32"))),
      steps_(newSpin(1, 1'000'000)), check_(newCombo()), seed_(new ValueEdit<std::uint64_t>(parseSeed, showSeed)), command_(new QLineEdit),
      problem_(new InlineNote(InlineNote::Tone::Problem)), trouble_(new TroubleBox)
{
    device_->setObjectName("device");
    command_->setObjectName("engineCommand");
    problem_->setObjectName("runProblem");

    offer<RunMode>(*mode_, {{tr("threads"), RunMode::Threads, tr("All ranks at once, a thread for each.")},
                            {tr("emulated"), RunMode::Emulated, tr("Virtual ranks: each action alone, at its place in virtual time.")},
                            {tr("processes"), RunMode::Processes}});
    setItemEnabled(*mode_, static_cast<int>(RunMode::Processes), false,
                   tr("mpirun starts these runs, a process per rank: mpirun -np 4 stagecraft-cli run PLAN --mode processes --trace run.strace; "
                      "or torchrun --no-python --nproc-per-node 4 in its place. Then open the trace."));
    offer<DeviceKind>(*device_, {{tr("CPU"), DeviceKind::Cpu}, {tr("GPU (CUDA)"), DeviceKind::Cuda}});
    gpus_->setPlaceholderText(tr("spread evenly"));
    offer<TraceLevel>(*tracing_, {{tr("host"), TraceLevel::HostSpans, tr("When a rank began an action; of a GPU, when the host asked for it.")},
                                  {tr("actions"), TraceLevel::Events, tr("When each action began and ended; of a GPU by CUDA events.")},
                                  {tr("kernels"), TraceLevel::Kernels, tr("What an action consists of as well, beneath its block: a GPU's kernels and copies, by CUPTI; on the CPU LibTorch's operators.")},
                                  {tr("calls"), TraceLevel::Api, tr("Of a GPU each call of CUDA and each allocation as well.")}});
    offer<Precision>(*precision_, {{tr("float32"), Precision::Fp32},
                                   {tr("bfloat16"), Precision::Bf16, tr("Loss, sums of gradients and the main copy of the weights stay float32.")}});
    offer<CheckMode>(*check_, {{tr("off"), CheckMode::Off}, {tr("first step"), CheckMode::First}, {tr("all steps"), CheckMode::All}});
    command_->setPlaceholderText(tr("stagecraft-cli beside this program"));
    command_->setClearButtonEnabled(true);

    QFormLayout* form = newForm();
    addField(*form, tr("Mode"), *mode_,
             tr("Threads runs a thread per rank on the cores there are; emulated runs every action alone, for real, and places it on virtual clocks."));
    addField(*form, tr("Device"), *device_, deviceTip());
    addEdit(*form, tr("GPUs of ranks"), *gpus_,
            tr("The number of each rank's GPU, or cpu, such as 0, 0, 1, cpu; empty: spread evenly, ranks that follow each other share one where "
               "there are fewer."));
    addField(*form, tr("Recording"), *tracing_, tr("How much is recorded beneath the actions; each takes more time than the one before. On the CPU kernels and calls are LibTorch's operators."));
    addField(*form, tr("Precision"), *precision_, tr("Of weights, activations, gradients and what goes from stage to stage."));
    addField(*form, tr("Float32"), *tf32_,
             tr("GPUs may multiply with 10 bits of the 23 of a float32's mantissa (TensorFloat-32), which is faster, and coarser."));
    addField(*form, tr("Ste&ps"), *steps_, tr("Training steps of one run."));
    addField(*form, tr("Chec&k"), *check_, tr("Which steps are checked against the plain sequential model."));
    addEdit(*form, tr("Seed"), *seed_, tr("Makes weights and data; the same seed gives the same run."));
    addField(*form, tr("Engine command"), *command_,
             tr("What starts the engine, such as \"ssh gpu-host stagecraft-cli\"; the word worker is added. With Enter it is asked what GPUs there are."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);
    layout->addWidget(trouble_);

    bind(*mode_, "runMode", tr("run mode"), [](Plan& plan) -> auto& { return plan.run.mode; });
    // A run on the CPU takes no numbers of GPUs.
    connect(device_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("device"), [this](Plan& plan) {
            plan.run.device = static_cast<DeviceKind>(device_->currentData().toInt());
            if (plan.run.device == DeviceKind::Cpu) plan.run.gpus.clear();
        });
    });
    bind(*gpus_, "gpus", tr("GPUs of ranks"), [](Plan& plan) -> auto& { return plan.run.gpus; });
    bind(*tracing_, "tracing", tr("what is recorded"), [](Plan& plan) -> auto& { return plan.run.tracing; });
    bind(*precision_, "precision", tr("precision"), [](Plan& plan) -> auto& { return plan.run.precision; });
    bind(*tf32_, "tf32", tr("TF32"), [](Plan& plan) -> auto& { return plan.run.tf32; });
    bind(*steps_, "steps", tr("steps"), [](Plan& plan) -> auto& { return plan.run.steps; });
    bind(*check_, "check", tr("check"), [](Plan& plan) -> auto& { return plan.run.check; });
    bind(*seed_, "seed", tr("seed"), [](Plan& plan) -> auto& { return plan.run.seed; });
    connect(command_, &QLineEdit::textChanged, this, &RunSection::engineCommandEdited);
    connect(command_, &QLineEdit::editingFinished, this, &RunSection::engineCommandEntered);
}

void RunSection::setEngineCommand(const QString& prefix) { command_->setText(prefix); }
QString RunSection::engineCommand() const { return command_->text(); }

void RunSection::setEngineMachine(const EngineMachine& machine)
{
    machine_ = machine;
    showDevice();
}

void RunSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    select(*mode_, run.mode);
    steps_->setValue(run.steps);
    select(*check_, run.check);
    seed_->setValue(run.seed);
    gpus_->setValue(run.gpus);
    select(*tracing_, run.tracing);
    select(*precision_, run.precision);
    tf32_->setChecked(run.tf32);
    select(*device_, run.device);
    showDevice();
}

// A plan for GPUs stays one where there are none: it may be another machine's.
void RunSection::showDevice()
{
    const bool usable = machine_.noGpus.isEmpty();
    setItemEnabled(*device_, static_cast<int>(DeviceKind::Cuda), usable, machine_.noGpus);
    QStringList tip{deviceTip()};
    if (!usable) tip << machine_.noGpus;
    if (!machine_.gpus.empty()) tip << tr("GPUs where the engine runs:") + '\n' + gpuLines(machine_.gpus);
    const QString told = tip.join(QStringLiteral("\n\n"));
    device_->setToolTip(plainTip(told));
    device_->setAccessibleDescription(told);

    const bool onGpus = plan().run.device == DeviceKind::Cuda;
    setCapability(*gpus_, onGpus, tr("The ranks compute on the CPU."));
    const bool fine = plan().run.precision == Precision::Fp32;
    setCapability(*tf32_, onGpus && fine, fine ? tr("The CPU multiplies in full float32.") : tr("The run multiplies in bfloat16."));
    problem_->say(troubleWithGpus(plan(), machine_));
}

} // namespace stagecraft::ui
