// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the plan is run for real, on which devices, and with which engine command. The command is a setting of the program, not of the
// plan; what GPUs there are where it runs is told from outside (ui/bridge/engine_inquiry.h).
#pragma once

#include "ui/bridge/engine_machine.h"
#include "ui/lab/lab_section.h"

class QLineEdit;

namespace stagecraft::ui {

class InlineNote;
class TroubleBox;

// Why a run of the plan would not begin there, as far as that is about GPUs, with what to do; empty: nothing is known that keeps it.
[[nodiscard]] QString troubleWithGpus(const engine::Plan& plan, const EngineMachine& machine);

class RunSection : public LabSection {
    Q_OBJECT
public:
    explicit RunSection(QWidget* parent = nullptr);

    void setEngineCommand(const QString& prefix); // empty: the program beside this one
    [[nodiscard]] QString engineCommand() const;
    void setEngineMachine(const EngineMachine& machine);
    [[nodiscard]] TroubleBox& trouble() { return *trouble_; }

signals:
    void engineCommandEdited(const QString& prefix);
    void engineCommandEntered(); // it is whole: the field was left, or Enter pressed

protected:
    void showPlan() override;

private:
    void showDevice();

    EngineMachine machine_;
    QComboBox* mode_;
    QComboBox* device_;
    ValueEdit<std::vector<int>>* gpus_;
    QComboBox* tracing_;
    QComboBox* precision_;
    QCheckBox* tf32_;
    QSpinBox* steps_;
    QComboBox* check_;
    ValueEdit<std::uint64_t>* seed_;
    QLineEdit* command_;
    InlineNote* problem_;
    TroubleBox* trouble_;
};

} // namespace stagecraft::ui
