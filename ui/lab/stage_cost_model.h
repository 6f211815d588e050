// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cost table in use, one row per stage: its rank, the factor on assumed times (the one column that can be edited, and
// only where costs are assumed), and the times of one micro-batch.
#pragma once

#include "engine/plan/plan.h"

#include <QAbstractTableModel>

#include <optional>
#include <vector>

namespace stagecraft::ui {

class StageCostModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { StageColumn, RankColumn, Factor, Forward, Backward, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setPlan(const engine::Plan& plan);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

signals:
    void factorsEdited(const std::vector<double>& factors); // empty: all 1

private:
    [[nodiscard]] double factor(std::size_t stage) const;

    bool editable_ = false;
    std::vector<double> factors_; // one per stage, or empty
    std::vector<int> ranks_;
    std::optional<engine::PipelineSpec> placed_; // whose stages ranks_ places
    std::vector<engine::StageCosts> costs_; // empty where there is no table
    int stages_ = 0;
};

} // namespace stagecraft::ui
