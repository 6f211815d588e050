// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/trouble_box.h"

#include "ui/lab/form.h"

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSpinBox>

#include <algorithm>

namespace stagecraft::ui {

TroubleBox::TroubleBox(QWidget* parent)
    : QWidget(parent), stage_(new QSpinBox), factor_(new QDoubleSpinBox), held_(new QCheckBox(tr("Hold the stage")))
{
    stage_->setObjectName("troubleStage");
    factor_->setObjectName("troubleFactor");
    held_->setObjectName("troubleHeld");
    factor_->setRange(1, 1000);
    factor_->setDecimals(1);
    factor_->setSingleStep(0.5);
    factor_->setPrefix(tr("× "));
    for (QWidget* control : {static_cast<QWidget*>(stage_), static_cast<QWidget*>(factor_)}) ignoreWheelUnlessFocused(*control);

    auto* title = new QLabel(tr("Trouble while it runs"));
    title->setProperty("tone", "hint");
    auto* form = new QFormLayout(this);
    form->setContentsMargins(0, 8, 0, 0);
    form->addRow(title);
    addField(*form, tr("Stage"), *stage_, tr("The stage that gets into trouble."));
    addField(*form, tr("Takes"), *factor_, tr("Each action of the stage goes on doing nothing until it has taken so many times as long."));
    describe(*held_, tr("Hold the stage"), tr("The stage stands still before its next action, until this is taken back."));
    form->addRow(held_);

    connect(stage_, &QSpinBox::valueChanged, this, &TroubleBox::showStage);
    connect(factor_, &QDoubleSpinBox::valueChanged, this, [this](double factor) {
        stages_[static_cast<std::size_t>(stage_->value())].factor = factor;
        emit asked({.stage = stage_->value(), .factor = factor});
    });
    connect(held_, &QCheckBox::toggled, this, [this](bool held) {
        stages_[static_cast<std::size_t>(stage_->value())].held = held;
        emit asked({.stage = stage_->value(), .held = held});
    });
    stages_.resize(1);
    showStage();
    setRunning(false);
}

void TroubleBox::beginRun(const engine::Plan& plan)
{
    stages_.assign(static_cast<std::size_t>(std::max(plan.stages(), 1)), {});
    for (std::size_t s = 0; s < plan.run.slowdown.size() && s < stages_.size(); ++s) stages_[s].factor = plan.run.slowdown[s];
    stage_->setRange(0, static_cast<int>(stages_.size()) - 1);
    showStage();
}

void TroubleBox::setRunning(bool running)
{
    for (QWidget* control : {static_cast<QWidget*>(stage_), static_cast<QWidget*>(factor_), static_cast<QWidget*>(held_)})
        setCapability(*control, running, tr("Nothing runs."));
}

void TroubleBox::showStage()
{
    const StageState& stage = stages_[static_cast<std::size_t>(stage_->value())];
    const QSignalBlocker quietFactor(factor_);
    const QSignalBlocker quietHeld(held_);
    factor_->setValue(stage.factor);
    held_->setChecked(stage.held);
}

} // namespace stagecraft::ui
