// SPDX-License-Identifier: GPL-3.0-or-later
//
// How often actions of a stage and kind took how long: bars over an axis of time, with the middle half and the median marked.
//
//   DurationHistogram histogram;
//   histogram.show(row.histogram, row.statistics, theme.block(PaintClass::Forward, 0));
#pragma once

#include "ui/theme/theme.h"

#include "traces/analysis/statistics.h"

#include <QWidget>

class QCPBars;
class QCPItemRect;
class QCPItemStraightLine;
class QCPItemText;
class QCustomPlot;

namespace stagecraft::ui {

class DurationHistogram : public QWidget {
    Q_OBJECT
public:
    explicit DurationHistogram(QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void show(const traces::Histogram& histogram, const traces::ActionStatistics& statistics, const QColor& colour);
    void clear(const QString& why); // nothing to show; the text stands in its place
    [[nodiscard]] QCustomPlot& plot() { return *plot_; }
    [[nodiscard]] QCPBars& bars() { return *bars_; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void pressed(); // by a mouse: it has no keys of its own

private:
    void setMarksVisible(bool visible);

    QCustomPlot* plot_;
    QCPBars* bars_;
    QCPItemRect* middleHalf_;
    QCPItemStraightLine* median_;
    QCPItemText* text_;
    Theme theme_;
};

} // namespace stagecraft::ui
