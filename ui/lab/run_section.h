// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the plan is run for real, and with which engine command. The command is a setting of the program, not of the plan.
#pragma once

#include "ui/lab/lab_section.h"

class QLineEdit;

namespace stagecraft::ui {

class TroubleBox;

class RunSection : public LabSection {
    Q_OBJECT
public:
    explicit RunSection(QWidget* parent = nullptr);

    void setEngineCommand(const QString& prefix); // empty: the program beside this one
    [[nodiscard]] QString engineCommand() const;
    [[nodiscard]] TroubleBox& trouble() { return *trouble_; }

signals:
    void engineCommandEdited(const QString& prefix);

protected:
    void showPlan() override;

private:
    QComboBox* mode_;
    QComboBox* device_;
    QSpinBox* steps_;
    QComboBox* check_;
    ValueEdit<std::uint64_t>* seed_;
    QLineEdit* command_;
    TroubleBox* trouble_;
};

} // namespace stagecraft::ui
