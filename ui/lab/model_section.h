// SPDX-License-Identifier: GPL-3.0-or-later
//
// Model, rows of a micro-batch, and which layers lie on which stage.
#pragma once

#include "engine/model/model.h"
#include "ui/lab/lab_section.h"
#include "ui/lab/value_edit.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSpinBox;
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

    QComboBox* model_;
    QSpinBox* rows_;
    QLabel* summary_;
    ValueEdit<engine::Partition>* partition_;
    QPushButton* balance_;
    InlineNote* problem_;
    LayerModel* layers_;
    QTableView* table_;
};

} // namespace stagecraft::ui
