// SPDX-License-Identifier: GPL-3.0-or-later
//
// How long the actions of each stage and kind took, as a table: a row for each stage, direction and kind.
#pragma once

#include "traces/analysis/durations.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>

#include <vector>

namespace stagecraft::ui {

class StatisticsModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { ActionColumn, Count, Median, MiddleHalf, Longest, Share, ColumnCount };
    static constexpr int kSortRole = Qt::UserRole; // what a column is ordered by
    using QAbstractTableModel::QAbstractTableModel;

    void setTheme(const Theme& theme);
    void setRows(std::vector<traces::DurationRow> rows);
    [[nodiscard]] const std::vector<traces::DurationRow>& rows() const { return rows_; }
    // The row of these actions; -1 where there is none.
    [[nodiscard]] int rowOf(traces::Stage stage, traces::Flow flow, traces::ActionKind kind) const;
    [[nodiscard]] QColor colourOf(int row) const; // as the timeline paints them

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    [[nodiscard]] QVariant sortKey(int row, int column) const;

    std::vector<traces::DurationRow> rows_;
    Theme theme_ = Theme::of(ThemeKind::Light);
};

// "0F", "u3B", "2F+B": the actions of a row in the short form of schedules.
QString actionText(const traces::ActionStatistics& statistics);
// "forward of stage 0, rank 0, chunk 0": for people.
QString actionName(const traces::DurationRow& row);

} // namespace stagecraft::ui
