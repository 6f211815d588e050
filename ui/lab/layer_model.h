// SPDX-License-Identifier: GPL-3.0-or-later
//
// The layers of a plan's model as a table: what each is, the stage and rank it lies on, and its sizes.
#pragma once

#include "engine/plan/plan.h"

#include <QAbstractTableModel>

#include <vector>

namespace stagecraft::ui {

class LayerModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, StageOf, Parameters, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setPlan(const engine::Plan& plan);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    engine::ModelSpec model_;
    engine::Partition partition_;
    engine::Precision precision_ = engine::Precision::Fp32;
    std::vector<engine::LayerCounts> counts_;
    std::vector<int> stages_; // by layer; empty where the partition does not fit
};

} // namespace stagecraft::ui
