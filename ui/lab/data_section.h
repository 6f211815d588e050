// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a run learns from: random numbers, a text, or samples in files.
#pragma once

#include "ui/lab/lab_section.h"

namespace stagecraft::ui {

class InlineNote;
class PathField;

class DataSection : public LabSection {
    Q_OBJECT
public:
    explicit DataSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    QComboBox* source_;
    QComboBox* tokens_;
    PathField* path_;
    PathField* targets_;
    InlineNote* problem_;
};

} // namespace stagecraft::ui
