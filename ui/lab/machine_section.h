// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the pipeline runs on, for simulations: nodes and their links, how sends behave, ranks that differ, the memory of a rank, and
// the replicas beside it.
#pragma once

#include "ui/lab/lab_section.h"
#include "ui/lab/quantities.h"

namespace stagecraft::ui {

class InlineNote;

class MachineSection : public LabSection {
    Q_OBJECT
public:
    explicit MachineSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    ValueEdit<traces::Bytes>* memory_;
    QComboBox* recompute_;
    QComboBox* send_;
    QComboBox* transfers_;
    QCheckBox* sharedLinks_;
    QSpinBox* perNode_;
    ValueEdit<traces::TimeNs>* nodeLatency_;
    ValueEdit<double>* nodeBandwidth_;
    ValueEdit<std::vector<double>>* rankScale_;
    ValueEdit<std::vector<traces::TimeNs>>* lateStart_;
    ValueEdit<traces::TimeNs>* hostLatency_;
    ValueEdit<double>* hostBandwidth_;
    QSpinBox* replicas_;
    ValueEdit<traces::TimeNs>* replicaLatency_;
    ValueEdit<double>* replicaBandwidth_;
    ValueEdit<traces::Bytes>* bucket_;
    QCheckBox* barrier_;
    InlineNote* problem_;
};

} // namespace stagecraft::ui
