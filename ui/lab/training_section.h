// SPDX-License-Identifier: GPL-3.0-or-later
//
// How a run's steps change the weights.
#pragma once

#include "ui/lab/lab_section.h"
#include "ui/lab/quantities.h"

namespace stagecraft::ui {

class InlineNote;

class TrainingSection : public LabSection {
    Q_OBJECT
public:
    explicit TrainingSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    QComboBox* optimizer_;
    ValueEdit<double>* learningRate_;
    QComboBox* rateCourse_;
    QSpinBox* warmup_;
    ValueEdit<double>* momentum_;
    ValueEdit<MaybeNumber>* weightDecay_;
    ValueEdit<double>* clipNorm_;
    ValueEdit<double>* lossScale_;
    InlineNote* problem_;
};

} // namespace stagecraft::ui
