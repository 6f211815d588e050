// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/engine_section.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/quantities.h"

#include <QFormLayout>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::ActivationAccount;
using engine::HandoffKind;
using engine::Plan;
using engine::RunMode;

EngineSection::EngineSection(QWidget* parent)
    : LabSection(parent), handoff_(newCombo()), depth_(newSpin(0, 1 << 20)), activations_(newCombo()),
      slowdown_(new ValueEdit<std::vector<double>>(parseSlowdown, showFactors)), problem_(new InlineNote(InlineNote::Tone::Problem))
{
    problem_->setObjectName("engineProblem");
    handoff_->setObjectName("handoff");
    depth_->setSpecialValueText(tr("for all"));
    slowdown_->setPlaceholderText(tr("none"));
    offer<HandoffKind>(*handoff_, {{tr("boxes"), HandoffKind::Boxes, tr("A place for every tensor of a step; nobody waits to send.")},
                                   {tr("queue with a mutex"), HandoffKind::Mutex, tr("A queue for each boundary and direction, under a mutex with two condition variables.")},
                                   {tr("lock-free ring"), HandoffKind::Ring, tr("A ring for each boundary and direction, whose two ends count in atomics of their own.")},
                                   {tr("semaphores"), HandoffKind::Semaphore, tr("A ring whose free and filled places two semaphores count.")}});
    offer<ActivationAccount>(*activations_, {{tr("the allocator"), ActivationAccount::Allocator, tr("The blocks that a forward leaves behind, as the memory plot shows them.")},
                                             {tr("saved tensors too"), ActivationAccount::SavedTensors,
                                              tr("Beside that what autograd saves for the backward, tensor by tensor; costs some microseconds a forward, and the log tells it.")}});

    QFormLayout* form = newForm();
    addField(*form, tr("Hand-off"), *handoff_, tr("How a tensor goes from one rank's thread to another's."));
    addField(*form, tr("Room"), *depth_,
             tr("Tensors that may wait at a boundary of a queue; where it is full the sender waits, which the timeline shows, and too little stops a schedule for ever."));
    addField(*form, tr("Activations by"), *activations_, tr("What tells how much of a micro-batch is kept for its backward."));
    addEdit(*form, tr("Slow stages"), *slowdown_, tr("A factor from 1 on for the time of each stage's actions in a run, such as 1, 1, 2, 1; empty: none is slow."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);

    // Boxes have a place for every tensor: room of another number would be refused beside them.
    connect(handoff_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("hand-off"), [this](Plan& plan) {
            plan.run.handoff = static_cast<HandoffKind>(handoff_->currentData().toInt());
            if (plan.run.handoff == HandoffKind::Boxes) plan.run.handoffDepth = 0;
        });
    });
    bind(*depth_, "handoffDepth", tr("room of a hand-off"), [](Plan& plan) -> auto& { return plan.run.handoffDepth; });
    bind(*activations_, "activationAccount", tr("what tells activations"), [](Plan& plan) -> auto& { return plan.run.activations; });
    bind(*slowdown_, "slowdown", tr("slow stages"), [](Plan& plan) -> auto& { return plan.run.slowdown; });
}

void EngineSection::showPlan()
{
    const engine::RunSpec& run = plan().run;
    select(*handoff_, run.handoff);
    depth_->setValue(run.handoffDepth);
    select(*activations_, run.activations);
    slowdown_->setValue(run.slowdown);

    const bool threads = run.mode == RunMode::Threads;
    const QString otherMode = tr("It is of mode threads; mode %1 has a way of its own, and nobody waits there to send.").arg(toQt(runModeText(run.mode)));
    setCapability(*handoff_, threads, otherMode);
    setCapability(*depth_, threads && run.handoff != HandoffKind::Boxes, threads ? tr("Boxes have a place for every tensor.") : otherMode);
    setCapability(*activations_, run.mode != RunMode::Processes, tr("Saved tensors are counted over all ranks of one process."));

    const auto stages = static_cast<std::size_t>(plan().stages());
    problem_->say(run.slowdown.empty() || run.slowdown.size() == stages
                      ? QString()
                      : tr("Slow stages: one factor for each of the %1 is needed, or none.").arg(counted(stages, "stage")));
}

} // namespace stagecraft::ui
