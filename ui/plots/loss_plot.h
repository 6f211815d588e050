// SPDX-License-Identifier: GPL-3.0-or-later
//
// The loss of each step of a run, as a small curve, and beside it those of runs before it: what old weights or another schedule cost is
// seen there. Its last value is told by titleChanged(), for the frame around it: a plot this low has no room for texts.
//
//   loss->setTrace(*run.trace());
//   loss->setEarlier({{"1F1B", before}});
#pragma once

#include "ui/theme/theme.h"

#include "traces/store/trace.h"

#include <QWidget>

#include <memory>
#include <vector>

class QCustomPlot;
class QCPItemText;

namespace stagecraft::ui {

class LossPlot : public QWidget {
    Q_OBJECT
public:
    explicit LossPlot(QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setLosses(const std::vector<double>& losses); // by step, from 0
    void setTrace(const traces::Trace& trace);         // the losses of its steps
    struct EarlierRun {
        QString name;
        std::shared_ptr<const traces::Trace> trace;
    };
    // The newest first; those without a loss are left out, and of many the oldest. `name` is that of the run in front.
    void setEarlier(const QString& name, const std::vector<EarlierRun>& runs);
    [[nodiscard]] QCustomPlot& plot() { return *plot_; }

    [[nodiscard]] const QString& title() const { return title_; } // "Loss 0.512 after step 4"

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void titleChanged(const QString& title);
    void pressed(); // by a mouse: it has no keys of its own

private:
    struct Points {
        QVector<double> steps;
        QVector<double> losses; // NaN where one is no finite number: the curve breaks there
    };
    static Points pointsOf(const traces::Trace& trace);
    void setPoints(const Points& points);
    void draw(int graph, const Points& points);
    void paintGraphs();
    void fitAxes();
    void showLegend(bool shown);

    QString title_;
    QCustomPlot* plot_;
    QCPItemText* emptyText_;
    std::vector<Points> shown_; // of the run in front, then of the earlier ones
    Theme theme_;
};

} // namespace stagecraft::ui
