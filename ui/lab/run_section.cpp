// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/run_section.h"

#include "ui/lab/form.h"
#include "ui/lab/quantities.h"
#include "ui/lab/trouble_box.h"

#include <QComboBox>
#include <QFormLayout>
#include <QSpinBox>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::CheckMode;
using engine::OptimizerKind;
using engine::RateCourse;
using engine::RunMode;

RunSection::RunSection(QWidget* parent)
    : LabSection(parent), mode_(newCombo()), device_(newCombo()), steps_(newSpin(1, 1'000'000)), check_(newCombo()),
      optimizer_(newCombo()), learningRate_(new ValueEdit<double>(parsePositive, showNumber)),
      rateCourse_(newCombo()), warmup_(newSpin(0, 1'000'000)), seed_(new ValueEdit<std::uint64_t>(parseSeed, showSeed)), command_(new QLineEdit), trouble_(new TroubleBox)
{
    mode_->setObjectName("runMode");
    device_->setObjectName("device");
    steps_->setObjectName("steps");
    check_->setObjectName("check");
    optimizer_->setObjectName("optimizer");
    learningRate_->setObjectName("learningRate");
    rateCourse_->setObjectName("rateCourse");
    warmup_->setObjectName("warmup");
    seed_->setObjectName("seed");
    command_->setObjectName("engineCommand");

    mode_->addItem(tr("threads"), static_cast<int>(RunMode::Threads));
    mode_->setItemData(0, tr("All ranks at once, a thread for each."), Qt::ToolTipRole);
    mode_->addItem(tr("emulated"), static_cast<int>(RunMode::Emulated));
    mode_->setItemData(1, tr("Virtual ranks: each action alone, at its place in virtual time."), Qt::ToolTipRole);
    mode_->addItem(tr("processes"), static_cast<int>(RunMode::Processes));
    setItemEnabled(*mode_, static_cast<int>(RunMode::Processes), false,
                   tr("mpirun starts these runs, a process per rank: mpirun -np 4 stagecraft-cli run PLAN --mode processes --trace run.strace. "
                      "Then open the trace."));
    device_->addItem(tr("CPU"));
    check_->addItem(tr("off"), static_cast<int>(CheckMode::Off));
    check_->addItem(tr("first step"), static_cast<int>(CheckMode::First));
    check_->addItem(tr("all steps"), static_cast<int>(CheckMode::All));
    optimizer_->addItem(tr("AdamW"), static_cast<int>(OptimizerKind::AdamW));
    optimizer_->addItem(tr("Adam"), static_cast<int>(OptimizerKind::Adam));
    optimizer_->addItem(tr("SGD with momentum"), static_cast<int>(OptimizerKind::Momentum));
    optimizer_->addItem(tr("SGD"), static_cast<int>(OptimizerKind::Sgd));
    rateCourse_->addItem(tr("stays"), static_cast<int>(RateCourse::Constant));
    rateCourse_->addItem(tr("falls evenly"), static_cast<int>(RateCourse::Linear));
    rateCourse_->addItem(tr("falls as a cosine"), static_cast<int>(RateCourse::Cosine));
    command_->setPlaceholderText(tr("stagecraft-cli beside this program"));
    command_->setClearButtonEnabled(true);

    QFormLayout* form = newForm();
    addField(*form, tr("Mode"), *mode_,
             tr("Threads runs a thread per rank on the cores there are; emulated runs every action alone, for real, and places it on virtual clocks."));
    addField(*form, tr("Device"), *device_, tr("Where tensors live and actions compute."));
    setCapability(*device_, false, tr("The engine of this build computes on the CPU only."));
    addField(*form, tr("Ste&ps"), *steps_, tr("Training steps of one run."));
    addField(*form, tr("Chec&k"), *check_, tr("Which steps are checked against the plain sequential model."));
    addField(*form, tr("Opt&imizer"), *optimizer_, tr("How each step's gradients change the weights."));
    addEdit(*form, tr("Learning rate"), *learningRate_, tr("Size of the optimizer's steps."));
    addField(*form, tr("Rate over steps"), *rateCourse_, tr("How the learning rate goes on after the warm-up: it stays, or falls to 0 behind the last step."));
    addField(*form, tr("Warm-up steps"), *warmup_, tr("Steps that the learning rate takes to rise to its value."));
    addEdit(*form, tr("Seed"), *seed_, tr("Makes weights and data; the same seed gives the same run."));
    addField(*form, tr("Engine command"), *command_,
             tr("What starts the engine, such as \"ssh gpu-host stagecraft-cli\"; the word worker is added."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(trouble_);

    connect(mode_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("run mode"), [this](engine::Plan& plan) { plan.run.mode = static_cast<RunMode>(mode_->currentData().toInt()); });
    });
    connect(steps_, &QSpinBox::valueChanged, this,
            [this](int value) { change(tr("steps"), "steps", [&](engine::Plan& plan) { plan.run.steps = value; }); });
    connect(check_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("check"), [this](engine::Plan& plan) { plan.run.check = static_cast<CheckMode>(check_->currentData().toInt()); });
    });
    connect(optimizer_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("optimizer"), [this](engine::Plan& plan) { plan.run.optimizer = static_cast<OptimizerKind>(optimizer_->currentData().toInt()); });
    });
    connect(rateCourse_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("rate over steps"), [this](engine::Plan& plan) { plan.run.rateCourse = static_cast<RateCourse>(rateCourse_->currentData().toInt()); });
    });
    connect(warmup_, &QSpinBox::valueChanged, this,
            [this](int value) { change(tr("warm-up steps"), "warmup", [&](engine::Plan& plan) { plan.run.warmupSteps = value; }); });
    learningRate_->edited = [this](double value) {
        change(tr("learning rate"), "learningRate", [&](engine::Plan& plan) { plan.run.learningRate = value; });
    };
    seed_->edited = [this](std::uint64_t value) {
        change(tr("seed"), "seed", [&](engine::Plan& plan) { plan.run.seed = value; });
    };
    connect(command_, &QLineEdit::textChanged, this, &RunSection::engineCommandEdited);
}

void RunSection::setEngineCommand(const QString& prefix) { command_->setText(prefix); }
QString RunSection::engineCommand() const { return command_->text(); }

void RunSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    select(*mode_, static_cast<int>(run.mode));
    steps_->setValue(run.steps);
    select(*check_, static_cast<int>(run.check));
    select(*optimizer_, static_cast<int>(run.optimizer));
    learningRate_->setValue(run.learningRate);
    select(*rateCourse_, static_cast<int>(run.rateCourse));
    warmup_->setValue(run.warmupSteps);
    seed_->setValue(run.seed);
}

} // namespace stagecraft::ui
