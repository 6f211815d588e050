// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/run_section.h"

#include "ui/lab/form.h"
#include "ui/lab/quantities.h"
#include "ui/lab/trouble_box.h"

#include <QFormLayout>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::CheckMode;
using engine::Plan;
using engine::RunMode;

RunSection::RunSection(QWidget* parent)
    : LabSection(parent), mode_(newCombo()), device_(newCombo()), steps_(newSpin(1, 1'000'000)), check_(newCombo()),
      seed_(new ValueEdit<std::uint64_t>(parseSeed, showSeed)), command_(new QLineEdit), trouble_(new TroubleBox)
{
    device_->setObjectName("device");
    command_->setObjectName("engineCommand");

    offer<RunMode>(*mode_, {{tr("threads"), RunMode::Threads, tr("All ranks at once, a thread for each.")},
                            {tr("emulated"), RunMode::Emulated, tr("Virtual ranks: each action alone, at its place in virtual time.")},
                            {tr("processes"), RunMode::Processes}});
    setItemEnabled(*mode_, static_cast<int>(RunMode::Processes), false,
                   tr("mpirun starts these runs, a process per rank: mpirun -np 4 stagecraft-cli run PLAN --mode processes --trace run.strace. "
                      "Then open the trace."));
    device_->addItem(tr("CPU"));
    offer<CheckMode>(*check_, {{tr("off"), CheckMode::Off}, {tr("first step"), CheckMode::First}, {tr("all steps"), CheckMode::All}});
    command_->setPlaceholderText(tr("stagecraft-cli beside this program"));
    command_->setClearButtonEnabled(true);

    QFormLayout* form = newForm();
    addField(*form, tr("Mode"), *mode_,
             tr("Threads runs a thread per rank on the cores there are; emulated runs every action alone, for real, and places it on virtual clocks."));
    addField(*form, tr("Device"), *device_, tr("Where tensors live and actions compute."));
    setCapability(*device_, false, tr("The engine of this build computes on the CPU only."));
    addField(*form, tr("Ste&ps"), *steps_, tr("Training steps of one run."));
    addField(*form, tr("Chec&k"), *check_, tr("Which steps are checked against the plain sequential model."));
    addEdit(*form, tr("Seed"), *seed_, tr("Makes weights and data; the same seed gives the same run."));
    addField(*form, tr("Engine command"), *command_,
             tr("What starts the engine, such as \"ssh gpu-host stagecraft-cli\"; the word worker is added."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(trouble_);

    bind(*mode_, "runMode", tr("run mode"), [](Plan& plan) -> auto& { return plan.run.mode; });
    bind(*steps_, "steps", tr("steps"), [](Plan& plan) -> auto& { return plan.run.steps; });
    bind(*check_, "check", tr("check"), [](Plan& plan) -> auto& { return plan.run.check; });
    bind(*seed_, "seed", tr("seed"), [](Plan& plan) -> auto& { return plan.run.seed; });
    connect(command_, &QLineEdit::textChanged, this, &RunSection::engineCommandEdited);
}

void RunSection::setEngineCommand(const QString& prefix) { command_->setText(prefix); }
QString RunSection::engineCommand() const { return command_->text(); }

void RunSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    select(*mode_, run.mode);
    steps_->setValue(run.steps);
    select(*check_, run.check);
    seed_->setValue(run.seed);
}

} // namespace stagecraft::ui
