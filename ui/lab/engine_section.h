// SPDX-License-Identifier: GPL-3.0-or-later
//
// What goes on inside a run, for studies: how tensors are handed over, what tells activations, and which stages are slow on purpose.
#pragma once

#include "ui/lab/lab_section.h"

#include <vector>

namespace stagecraft::ui {

class InlineNote;

class EngineSection : public LabSection {
    Q_OBJECT
public:
    explicit EngineSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    QComboBox* handoff_;
    QSpinBox* depth_;
    QComboBox* activations_;
    ValueEdit<std::vector<double>>* slowdown_;
    InlineNote* problem_;
};

} // namespace stagecraft::ui
