// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/family_options.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/quantities.h"

#include <QComboBox>
#include <QFormLayout>
#include <QSpinBox>

namespace stagecraft::ui {

using engine::Concatenation;
using engine::PipelineSpec;
using engine::Sharding;
using engine::Slicing;

FamilyOptions::FamilyOptions(QFormLayout& form, QWidget* parent)
    : LabSection(parent), form_(form), concatenation_(newCombo()),
      group_(newSpin(0, static_cast<int>(engine::kMaxActions / 2))),
      memoryLimit_(new ValueEdit<traces::Bytes>(parseAutoSize, showAutoSize)), slicing_(newCombo()),
      offload_(new ValueEdit<double>(parseShare, showShare)), sharding_(newCombo())
{
    concatenation_->setObjectName("concatenation");
    group_->setObjectName("group");
    memoryLimit_->setObjectName("memoryLimit");
    slicing_->setObjectName("slicing");
    offload_->setObjectName("offload");
    sharding_->setObjectName("sharding");
    hide();

    group_->setSpecialValueText(tr("auto"));
    concatenation_->addItem(tr("direct"), static_cast<int>(Concatenation::Direct));
    concatenation_->addItem(tr("doubled forwards"), static_cast<int>(Concatenation::Doubling));
    concatenation_->addItem(tr("halved backwards"), static_cast<int>(Concatenation::Halving));
    slicing_->addItem(tr("equal lengths"), static_cast<int>(Slicing::Equal));
    slicing_->addItem(tr("equal times"), static_cast<int>(Slicing::Balanced));
    sharding_->addItem(tr("nothing"), static_cast<int>(Sharding::None));
    sharding_->addItem(tr("optimizer state (ZeRO-1)"), static_cast<int>(Sharding::Zero1));
    sharding_->addItem(tr("and gradients (ZeRO-2)"), static_cast<int>(Sharding::Zero2));
    sharding_->addItem(tr("and weights (ZeRO-3, FSDP)"), static_cast<int>(Sharding::Zero3));

    addField(form_, tr("Concatenation"), *concatenation_,
             tr("How the units of the schedule follow each other where there are more micro-batches than one unit has."));
    addField(form_, tr("Group"), *group_,
             tr("Micro-batches that go through a chunk before the next, or that an update of the weights takes; auto is the schedule's own number."));
    addEdit(form_, tr("Memory limit"), *memoryLimit_,
            tr("How much of its activations a rank may keep, such as 8GiB; the schedule is planned by it. Auto holds p micro-batches."));
    addField(form_, tr("Cut into"), *slicing_,
             tr("Where sequences are cut: into slices of one length, or of one time, which makes the first the longest."));
    addEdit(form_, tr("Offload"), *offload_,
            tr("Share of each rank's activations that goes to the host after its forward and comes back before its backward."));
    addField(form_, tr("Replicas divide"), *sharding_,
             tr("What the replicas of the pipeline divide among themselves, to be gathered where it is used."));

    connect(concatenation_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("concatenation"), [this](engine::Plan& plan) {
            plan.pipeline.concatenation = static_cast<Concatenation>(concatenation_->currentData().toInt());
        });
    });
    connect(group_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("group"), "group", [&](engine::Plan& plan) { plan.pipeline.group = value; });
    });
    memoryLimit_->edited = [this](traces::Bytes value) {
        change(tr("memory limit"), "memoryLimit", [&](engine::Plan& plan) { plan.pipeline.memoryLimit = value; });
    };
    connect(slicing_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("cut of sequences"),
               [this](engine::Plan& plan) { plan.pipeline.slicing = static_cast<Slicing>(slicing_->currentData().toInt()); });
    });
    offload_->edited = [this](double value) {
        change(tr("offload"), "offload", [&](engine::Plan& plan) { plan.pipeline.offload = value; });
    };
    connect(sharding_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("what replicas divide"),
               [this](engine::Plan& plan) { plan.pipeline.sharding = static_cast<Sharding>(sharding_->currentData().toInt()); });
    });
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
    showRow(*slicing_, (family && family->cutsSequences) || pipeline.slices > 1);

    select(*concatenation_, static_cast<int>(pipeline.concatenation));
    group_->setValue(pipeline.group);
    memoryLimit_->setValue(pipeline.memoryLimit);
    select(*slicing_, static_cast<int>(pipeline.slicing));
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
