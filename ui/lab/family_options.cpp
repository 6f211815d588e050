// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/family_options.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/quantities.h"

#include <QFormLayout>

namespace stagecraft::ui {

using engine::Concatenation;
using engine::PipelineSpec;
using engine::Plan;
using engine::Sharding;
using engine::Slicing;

FamilyOptions::FamilyOptions(QFormLayout& form, QWidget* parent)
    : LabSection(parent), form_(form), concatenation_(newCombo()),
      group_(newSpin(0, static_cast<int>(engine::kMaxActions / 2))),
      memoryLimit_(new ValueEdit<traces::Bytes>(parseAutoSize, showAutoSize)), slicing_(newCombo()),
      verticalSync_(new QCheckBox(tr("One version on all stages"))), offload_(new ValueEdit<double>(parseShare, showShare)), sharding_(newCombo())
{
    hide();

    group_->setSpecialValueText(tr("auto"));
    offer<Concatenation>(*concatenation_, {{tr("direct"), Concatenation::Direct},
                                           {tr("doubled forwards"), Concatenation::Doubling},
                                           {tr("halved backwards"), Concatenation::Halving}});
    offer<Slicing>(*slicing_, {{tr("equal lengths"), Slicing::Equal}, {tr("equal times"), Slicing::Balanced}});
    offer<Sharding>(*sharding_, {{tr("nothing"), Sharding::None},
                                 {tr("optimizer state (ZeRO-1)"), Sharding::Zero1},
                                 {tr("state, gradients (ZeRO-2)"), Sharding::Zero2},
                                 {tr("all, with weights (ZeRO-3, FSDP)"), Sharding::Zero3}});

    addField(form_, tr("Concatenation"), *concatenation_,
             tr("How the units of the schedule follow each other where there are more micro-batches than one unit has."));
    addField(form_, tr("Group"), *group_,
             tr("Micro-batches that go through a chunk before the next, or that an update of the weights takes; auto is the schedule's own number."));
    addEdit(form_, tr("Memory limit"), *memoryLimit_,
            tr("How much of its activations a rank may keep, such as 8GiB; the schedule is planned by it. Auto holds p micro-batches."));
    addField(form_, tr("Cut into"), *slicing_,
             tr("Where sequences are cut: into slices of one length, or of one time, which makes the first the longest."));
    addField(form_, tr("Vertical sync"), *verticalSync_,
             tr("All stages take a micro-batch by the weights that the first stage had when it entered: they keep more versions, and all gradients "
                "are equally late."));
    addEdit(form_, tr("Offload"), *offload_,
            tr("Share of each rank's activations that goes to the host after its forward and comes back before its backward."));
    addField(form_, tr("Replicas divide"), *sharding_,
             tr("What the replicas of the pipeline divide among themselves, to be gathered where it is used."));

    bind(*concatenation_, "concatenation", tr("concatenation"), [](Plan& plan) -> auto& { return plan.pipeline.concatenation; });
    bind(*group_, "group", tr("group"), [](Plan& plan) -> auto& { return plan.pipeline.group; });
    bind(*memoryLimit_, "memoryLimit", tr("memory limit"), [](Plan& plan) -> auto& { return plan.pipeline.memoryLimit; });
    bind(*slicing_, "slicing", tr("cut of sequences"), [](Plan& plan) -> auto& { return plan.pipeline.slicing; });
    bind(*verticalSync_, "verticalSync", tr("vertical sync"), [](Plan& plan) -> auto& { return plan.pipeline.verticalSync; });
    bind(*offload_, "offload", tr("offload"), [](Plan& plan) -> auto& { return plan.pipeline.offload; });
    bind(*sharding_, "sharding", tr("what replicas divide"), [](Plan& plan) -> auto& { return plan.pipeline.sharding; });
}

void FamilyOptions::showRow(QWidget& control, bool taken)
{
    form_.setRowVisible(&control, taken);
    // a complaint about a field that is not there would be a riddle
    if (auto* edit = qobject_cast<ValueEditBase*>(&control); edit && !taken) edit->restore();
}

void FamilyOptions::showPlan()
{
    const PipelineSpec& pipeline = plan().pipeline;
    const engine::ScheduleFamily* family = engine::findFamily(pipeline.schedule); // none of a custom order
    showRow(*concatenation_, family && family->concatenates);
    showRow(*group_, family && family->goesInGroups);
    showRow(*memoryLimit_, family && family->plansByCosts);
    showRow(*verticalSync_, family && family->stashesVersions);
    showRow(*slicing_, (family && family->cutsSequences) || pipeline.slices > 1);

    select(*concatenation_, static_cast<int>(pipeline.concatenation));
    group_->setValue(pipeline.group);
    memoryLimit_->setValue(pipeline.memoryLimit);
    select(*slicing_, static_cast<int>(pipeline.slicing));
    verticalSync_->setChecked(pipeline.verticalSync);
    offload_->setValue(pipeline.offload);
    select(*sharding_, static_cast<int>(pipeline.sharding));

    setCapability(*slicing_, pipeline.slices > 1, tr("There is one slice; it is the whole sequence."));
    setCapability(*offload_, !family || family->takesOffload,
                  family ? tr("%1 leaves no activations to offload: it moves them itself, or keeps none.").arg(toQt(family->title)) : QString());
    const bool flushes = !family || !family->asynchronous;
    for (const Sharding level : {Sharding::Zero2, Sharding::Zero3})
        setItemEnabled(*sharding_, static_cast<int>(level), flushes,
                       tr("The schedule updates its weights within a step; divided gradients are reduced once a step."));
}

} // namespace stagecraft::ui
