// SPDX-License-Identifier: GPL-3.0-or-later
//
// Model, rows of a micro-batch, and which layers lie on which stage: by a rule, or by hand.
#pragma once

#include "engine/model/model.h"
#include "ui/lab/lab_section.h"

class QLabel;
class QTableView;

namespace stagecraft::ui {

class InlineNote;
class LayerModel;

class ModelSection : public LabSection {
    Q_OBJECT
public:
    explicit ModelSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    void showModelChoice();
    void showTied();
    void showRule();
    void takeRule();

    QComboBox* model_;
    QSpinBox* rows_;
    QCheckBox* tied_;
    QLabel* summary_;
    QComboBox* rule_;
    ValueEdit<engine::Partition>* partition_;
    InlineNote* problem_;
    LayerModel* layers_;
    QTableView* table_;
};

} // namespace stagecraft::ui
