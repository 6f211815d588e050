// SPDX-License-Identifier: GPL-3.0-or-later
//
// The numbers of a step: each figure with its formula, by theory, simulated and measured; and under them the ranks.
#pragma once

#include "ui/window/figure_rows.h"

#include <QScrollArea>

#include <vector>

class QGridLayout;
class QLabel;
class QSpinBox;
class QTableView;

namespace stagecraft::ui {

class RankFiguresModel;
class Workbench;

class FiguresPanel : public QScrollArea {
    Q_OBJECT
public:
    // The workbench must outlive the panel.
    explicit FiguresPanel(Workbench& workbench, QWidget* parent = nullptr);

    void refresh(); // called when sources or data changed
    [[nodiscard]] const std::vector<FigureRow>& rows() const { return rows_; }
    QSize sizeHint() const override;

public slots:
    void showStepOf(traces::Step step); // of the trace beside the simulated one

private:
    struct Line {
        QLabel* name;
        QLabel* byFormula;
        QLabel* simulated;
        QLabel* other;
        QLabel* formula;
    };
    [[nodiscard]] std::optional<traces::Step> shownStep() const;
    void showRows(const std::vector<FigureRow>& rows);
    Line newLine(int row);

    Workbench& workbench_;
    QSpinBox* step_;
    QLabel* simulatedHead_;
    QLabel* otherHead_;
    QGridLayout* grid_;
    QLabel* ranksTitle_;
    QTableView* ranksTable_;
    RankFiguresModel* ranks_;
    std::vector<Line> lines_;
    std::vector<FigureRow> rows_;
};

} // namespace stagecraft::ui
