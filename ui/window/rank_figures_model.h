// SPDX-License-Identifier: GPL-3.0-or-later
//
// The figures of each rank of a step as a table.
#pragma once

#include "ui/timeline/gap_table.h"

#include "traces/analysis/figures.h"

#include <QAbstractTableModel>

#include <optional>
#include <span>
#include <vector>

namespace stagecraft::ui {

class RankFiguresModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { RankColumn, Busy, Activations, Memory, Cause, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    // Null: none. GapTable::idle() tells which stage was waited for; without it only the kind of the cause is known.
    void setFigures(const traces::StepFigures* figures, std::span<const IdleShare> shares = {});

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    [[nodiscard]] static std::vector<IdleShare> idleOf(const traces::RankFigures& rank, std::span<const IdleShare> shares);

    std::vector<traces::RankFigures> ranks_;
    std::vector<std::vector<IdleShare>> idle_; // by row, the longest first
    traces::TimeNs makespan_ = 0;
};

} // namespace stagecraft::ui
