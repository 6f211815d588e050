// SPDX-License-Identifier: GPL-3.0-or-later
//
// The figures of each rank of a step as a table.
#pragma once

#include "traces/analysis/figures.h"

#include <QAbstractTableModel>

#include <vector>

namespace stagecraft::ui {

class RankFiguresModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { RankColumn, Busy, Activations, Memory, Cause, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setFigures(const traces::StepFigures* figures); // null: none

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<traces::RankFigures> ranks_;
    traces::TimeNs makespan_ = 0;
};

} // namespace stagecraft::ui
