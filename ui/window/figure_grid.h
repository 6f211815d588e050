// SPDX-License-Identifier: GPL-3.0-or-later
//
// The figures as lines: name, value by theory, simulated, measured; and the formula beneath. By keyboard one line at a time:
// Tab comes to the line that was read last, the arrow keys go from line to line, and a screen reader says all of it.
//
//   grid.setHeads("simulated", "emulated", "Step 2 of hello");
//   grid.setRows(figureRows(input));
#pragma once

#include "ui/window/figure_rows.h"

#include <QWidget>

#include <vector>

class QGridLayout;
class QLabel;

namespace stagecraft::ui {

// "Bubble over ideal: by formula 60 %, simulated 60 %, emulated 64 %; makespan/work − 1 = (p−1)/m"
QString spokenFigure(const FigureRow& row, const QString& simulatedHead, const QString& otherHead);

class FigureGrid : public QWidget {
    Q_OBJECT
public:
    explicit FigureGrid(QWidget* parent = nullptr);

    void setHeads(const QString& simulated, const QString& other, const QString& otherTip);
    void setRows(const std::vector<FigureRow>& rows);
    [[nodiscard]] const std::vector<FigureRow>& rows() const { return rows_; }
    [[nodiscard]] int leastWidth() const; // below it values would be cut off

signals:
    void lineFocused(QWidget* line); // to be brought into sight

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Line {
        QLabel* name; // has the focus for the whole line
        QLabel* byFormula;
        QLabel* simulated;
        QLabel* other;
        QLabel* formula;
    };
    Line newLine(int row);
    void makeCurrent(std::size_t line);
    void speak();

    QGridLayout* grid_;
    QLabel* simulatedHead_;
    QLabel* otherHead_;
    std::vector<Line> lines_;
    std::vector<FigureRow> rows_;
    std::size_t current_ = 0; // the one line that Tab comes to
};

} // namespace stagecraft::ui
