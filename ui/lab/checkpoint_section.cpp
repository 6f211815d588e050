// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/checkpoint_section.h"

#include "ui/lab/form.h"
#include "ui/lab/model_edits.h"
#include "ui/lab/path_field.h"

#include <QFormLayout>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::Plan;

CheckpointSection::CheckpointSection(QWidget* parent)
    : LabSection(parent), folder_(new PathField(PathField::Kind::Folder, "checkpoint")), every_(newSpin(0, 1'000'000)), resume_(new PathField(PathField::Kind::Folder, "resume")),
      problem_(new InlineNote(InlineNote::Tone::Problem))
{
    problem_->setObjectName("checkpointProblem");
    folder_->edit().setPlaceholderText(tr("none is written"));
    resume_->edit().setPlaceholderText(tr("fresh weights"));
    every_->setSpecialValueText(tr("the last step"));
    every_->setSuffix(tr(" steps"));

    QFormLayout* form = newForm();
    addPath(*form, tr("Written to"), *folder_, tr("Folder that gets weights and optimizer, as safetensors files; on the machine where the engine runs."));
    addField(*form, tr("Written after"), *every_, tr("After every so many steps, and after the last one; 0 is after the last one alone."));
    addPath(*form, tr("Goes on from"), *resume_,
            tr("A checkpoint, or a folder of several of which the latest counts; the steps of the run then include those before it."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);

    bind(folder_->edit(), "checkpoint", tr("folder of checkpoints"), [](Plan& plan) -> auto& { return plan.run.checkpoint; });
    bind(*every_, "checkpointEvery", tr("steps between checkpoints"), [](Plan& plan) -> auto& { return plan.run.checkpointEvery; });
    bind(resume_->edit(), "resume", tr("checkpoint to go on from"), [](Plan& plan) -> auto& { return plan.run.resume; });
}

// What a plan has, and cannot be, can be taken out again.
void CheckpointSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    folder_->setValue(run.checkpoint);
    every_->setValue(run.checkpointEvery);
    resume_->setValue(run.resume);

    const QString untrained = trainsWeights(plan()) ? QString() : tr("The schedule goes forward alone: there is nothing new to keep.");
    folder_->setAvailable(untrained.isEmpty() || !run.checkpoint.empty(), untrained);
    setCapability(*every_, !run.checkpoint.empty() || run.checkpointEvery > 0, tr("No folder is named that checkpoints are written to."));

    if (!run.checkpoint.empty() && !untrained.isEmpty()) problem_->say(untrained);
    else if (run.checkpoint.empty() && run.checkpointEvery > 0) problem_->say(tr("Name the folder that they are written to, or write none."));
    else problem_->say({});
}

} // namespace stagecraft::ui
