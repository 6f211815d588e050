// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/lab_panel.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/plain_tip.h"
#include "ui/bridge/text.h"
#include "ui/lab/checkpoint_section.h"
#include "ui/lab/cost_section.h"
#include "ui/lab/data_section.h"
#include "ui/lab/engine_section.h"
#include "ui/lab/fold_box.h"
#include "ui/lab/form.h"
#include "ui/lab/machine_section.h"
#include "ui/lab/model_section.h"
#include "ui/lab/pipeline_section.h"
#include "ui/lab/run_section.h"
#include "ui/lab/training_section.h"

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace stagecraft::ui {

LabPanel::LabPanel(PlanDocument& document, QWidget* parent)
    : QScrollArea(parent), document_(document), preset_(new QComboBox), description_(new QLabel), run_(new RunSection)
{
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Lab"));

    preset_->setObjectName("preset");
    preset_->setPlaceholderText(tr("Choose a plan…"));
    preset_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    ignoreWheelUnlessFocused(*preset_);
    for (const engine::PresetPlan& preset : engine::presetPlans()) {
        preset_->addItem(toQt(preset.name));
        const traces::Expected<engine::Plan> plan = engine::readPlan(preset.json);
        if (plan.ok()) preset_->setItemData(preset_->count() - 1, plainTip(toQt(plan.value().description)), Qt::ToolTipRole);
    }
    description_->setWordWrap(true);
    description_->setTextFormat(Qt::PlainText);
    description_->setProperty("tone", "hint");
    description_->setObjectName("planDescription");

    auto* model = new ModelSection;
    auto* pipeline = new PipelineSection;
    auto* costs = new CostSection;
    auto* machine = new MachineSection;
    auto* training = new TrainingSection;
    auto* data = new DataSection;
    auto* checkpoints = new CheckpointSection;
    auto* engine = new EngineSection;
    sections_ = {model, pipeline, costs, machine, run_, training, data, checkpoints, engine};

    auto* column = new QWidget;
    auto* layout = new QVBoxLayout(column);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(4);
    auto* form = new QFormLayout;
    addField(*form, tr("Pla&n"), *preset_, tr("Starts anew from one of the plans that come with the program."));
    layout->addLayout(form);
    layout->addWidget(description_);
    const auto addBox = [&](const QString& title, const char* name, QWidget* content) {
        auto* box = new FoldBox(title, content);
        box->setObjectName(name);
        layout->addWidget(box);
        boxes_.push_back(box);
    };
    addBox(tr("Model"), "modelBox", model);
    addBox(tr("Pipeline"), "pipelineBox", pipeline);
    addBox(tr("Costs"), "costsBox", costs);
    addBox(tr("Machine"), "machineBox", machine);
    addBox(tr("Run"), "runBox", run_);
    addBox(tr("Training"), "trainingBox", training);
    addBox(tr("Data"), "dataBox", data);
    addBox(tr("Checkpoints"), "checkpointBox", checkpoints);
    addBox(tr("Inside the engine"), "engineBox", engine);
    layout->addStretch(1);
    setWidget(column);

    setFoldedSections(foldedAtFirst());

    connect(preset_, &QComboBox::textActivated, this, &LabPanel::presetChosen);
    connect(pipeline, &PipelineSection::scheduleFileWanted, this, &LabPanel::scheduleFileWanted);
    for (LabSection* section : sections_)
        connect(section, &LabSection::edited, this,
                [this](const engine::Plan& plan, const QString& what, const QString& typedInto) {
                    document_.edit(plan, what, typedInto);
                });
    connect(&document_, &PlanDocument::changed, this, &LabPanel::showPlan);
    connect(&document_, &PlanDocument::titleChanged, this, &LabPanel::showPlan);
    showPlan();
}

QStringList LabPanel::foldedSections() const
{
    QStringList names;
    for (FoldBox* box : boxes_)
        if (!box->isOpen()) names << box->objectName();
    return names;
}

QStringList LabPanel::foldedAtFirst()
{
    return {QStringLiteral("machineBox"), QStringLiteral("trainingBox"), QStringLiteral("dataBox"), QStringLiteral("checkpointBox"),
            QStringLiteral("engineBox")};
}

void LabPanel::setFoldedSections(const QStringList& names)
{
    for (FoldBox* box : boxes_) box->setOpen(!names.contains(box->objectName()));
}

QSize LabPanel::sizeHint() const { return {320, 600}; }

void LabPanel::showPlan()
{
    const engine::Plan& plan = document_.plan();
    // Opened from a file, a plan is that file's, whatever its name.
    preset_->setCurrentIndex(document_.file().isEmpty() ? preset_->findText(toQt(plan.name)) : -1);
    preset_->setPlaceholderText(document_.file().isEmpty() ? tr("Choose a plan…") : document_.title());
    const engine::Expected<engine::Plan> preset = engine::presetPlan(plan.name);
    const bool changed = preset.ok() && preset.value() != plan && preset.value().description == plan.description;
    // A preset's words are about the preset; what the plan is by now, the controls say.
    description_->setText(changed ? tr("Changed from the preset %1, which was: %2").arg(toQt(plan.name), toQt(plan.description))
                                  : toQt(plan.description));
    description_->setVisible(!plan.description.empty());
    for (LabSection* section : sections_) section->setPlan(plan);
}

} // namespace stagecraft::ui
