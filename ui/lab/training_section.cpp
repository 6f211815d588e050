// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/training_section.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/model_edits.h"

#include <QFormLayout>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::OptimizerKind;
using engine::Plan;
using engine::RateCourse;

TrainingSection::TrainingSection(QWidget* parent)
    : LabSection(parent), optimizer_(newCombo()), learningRate_(new ValueEdit<double>(parsePositive, showNumber)), rateCourse_(newCombo()),
      warmup_(newSpin(0, 1'000'000)), momentum_(new ValueEdit<double>(parseMomentum, showNumber)),
      weightDecay_(new ValueEdit<MaybeNumber>(parseWeightDecay, showMaybeNumber)), clipNorm_(new ValueEdit<double>(parseClipNorm, showClipNorm)),
      lossScale_(new ValueEdit<double>(parseLossScale, showLossScale)), problem_(new InlineNote(InlineNote::Tone::Problem))
{
    problem_->setObjectName("trainingProblem");
    offer<OptimizerKind>(*optimizer_, {{tr("AdamW"), OptimizerKind::AdamW},
                                       {tr("Adam"), OptimizerKind::Adam},
                                       {tr("SGD with momentum"), OptimizerKind::Momentum},
                                       {tr("SGD"), OptimizerKind::Sgd}});
    offer<RateCourse>(*rateCourse_, {{tr("stays"), RateCourse::Constant}, {tr("falls evenly"), RateCourse::Linear}, {tr("falls as a cosine"), RateCourse::Cosine}});

    QFormLayout* form = newForm();
    addField(*form, tr("Opt&imizer"), *optimizer_, tr("How each step's gradients change the weights."));
    addEdit(*form, tr("Learning rate"), *learningRate_, tr("Size of the optimizer's steps."));
    addField(*form, tr("Rate over steps"), *rateCourse_, tr("How the learning rate goes on after the warm-up: it stays, or falls to 0 behind the last step."));
    addField(*form, tr("Warm-up steps"), *warmup_, tr("Steps that the learning rate takes to rise to its value."));
    addEdit(*form, tr("Momentum"), *momentum_, tr("How much of its velocity SGD with momentum keeps from step to step."));
    addEdit(*form, tr("Weight decay"), *weightDecay_, tr("How weights shrink beside the gradients; auto is 0.01 for AdamW and 0 for the others."));
    addEdit(*form, tr("Clip gradients"), *clipNorm_,
            tr("Where the norm of all gradients together is larger than this number, they shrink to it; all ranks meet for it before the update."));
    addEdit(*form, tr("Loss scale"), *lossScale_,
            tr("A power of two that the loss has in the backward, and that is taken off the gradients again, as training in 16 bits does it."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);

    bind(*optimizer_, "optimizer", tr("optimizer"), [](Plan& plan) -> auto& { return plan.run.optimizer; });
    bind(*learningRate_, "learningRate", tr("learning rate"), [](Plan& plan) -> auto& { return plan.run.learningRate; });
    bind(*rateCourse_, "rateCourse", tr("rate over steps"), [](Plan& plan) -> auto& { return plan.run.rateCourse; });
    bind(*warmup_, "warmup", tr("warm-up steps"), [](Plan& plan) -> auto& { return plan.run.warmupSteps; });
    bind(*momentum_, "momentum", tr("momentum"), [](Plan& plan) -> auto& { return plan.run.momentum; });
    bind(*weightDecay_, "weightDecay", tr("weight decay"), [](Plan& plan) -> auto& { return plan.run.weightDecay; });
    bind(*clipNorm_, "clipNorm", tr("clipping of gradients"), [](Plan& plan) -> auto& { return plan.run.clipNorm; });
    bind(*lossScale_, "lossScale", tr("loss scale"), [](Plan& plan) -> auto& { return plan.run.lossScale; });
}

void TrainingSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    select(*optimizer_, run.optimizer);
    learningRate_->setValue(run.learningRate);
    select(*rateCourse_, run.rateCourse);
    warmup_->setValue(run.warmupSteps);
    momentum_->setValue(run.momentum);
    weightDecay_->setValue(run.weightDecay);
    clipNorm_->setValue(run.clipNorm);
    lossScale_->setValue(run.lossScale);

    const bool trains = trainsWeights(plan());
    const QString inference = tr("The schedule goes forward alone: nothing is trained.");
    for (QWidget* control : {static_cast<QWidget*>(optimizer_), static_cast<QWidget*>(learningRate_), static_cast<QWidget*>(rateCourse_),
                             static_cast<QWidget*>(warmup_), static_cast<QWidget*>(weightDecay_), static_cast<QWidget*>(lossScale_)})
        setCapability(*control, trains, inference);
    setCapability(*momentum_, trains && run.optimizer == OptimizerKind::Momentum, trains ? tr("Only SGD with momentum has one.") : inference);

    // What a plan has, and its schedule cannot take, can be taken out again.
    const engine::ScheduleFamily* family = engine::findFamily(plan().pipeline.schedule);
    const bool together = !family || !family->asynchronous;
    const QString apart = family ? tr("%1 updates a stage when others have no gradients yet, and the norm is that of all gradients together.").arg(toQt(family->title))
                                 : QString();
    setCapability(*clipNorm_, trains && (together || run.clipNorm != 0), trains ? apart : inference);
    problem_->say(together || run.clipNorm == 0 ? QString() : apart);
}

} // namespace stagecraft::ui
