// SPDX-License-Identifier: GPL-3.0-or-later
//
// What some schedules take beside their numbers: how units follow each other, the size of a group, a memory limit, where sequences
// are cut; and what is done to a schedule of nearly any family: activations go to the host, replicas divide what they hold. What the
// chosen family leaves alone is not shown, and stays in the plan for the next one that takes it.
//
// The fields are rows of a form that is given, so that they stand in one column with its others; the section itself is never seen.
//
//   auto* options = new FamilyOptions(*form, this);   // of the pipeline's section, which passes its plan on and takes the edits
#pragma once

#include "ui/lab/lab_section.h"

class QFormLayout;

namespace stagecraft::ui {

class FamilyOptions : public LabSection {
    Q_OBJECT
public:
    FamilyOptions(QFormLayout& form, QWidget* parent);

protected:
    void showPlan() override;

private:
    void showRow(QWidget& control, bool taken);

    QFormLayout& form_;
    QComboBox* concatenation_;
    QSpinBox* group_;
    ValueEdit<traces::Bytes>* memoryLimit_;
    QComboBox* slicing_;
    QCheckBox* verticalSync_;
    ValueEdit<double>* offload_;
    QComboBox* sharding_;
};

} // namespace stagecraft::ui
