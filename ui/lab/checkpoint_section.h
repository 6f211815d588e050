// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where a run keeps its weights, and what it goes on from.
#pragma once

#include "ui/lab/lab_section.h"

namespace stagecraft::ui {

class InlineNote;
class PathField;

class CheckpointSection : public LabSection {
    Q_OBJECT
public:
    explicit CheckpointSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    PathField* folder_;
    QSpinBox* every_;
    PathField* resume_;
    InlineNote* problem_;
};

} // namespace stagecraft::ui
