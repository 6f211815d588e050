// SPDX-License-Identifier: GPL-3.0-or-later
//
// The loss of each step of a run, as a small curve. Its last value is told by titleChanged(), for the frame around it: a
// plot this low has no room for texts.
#pragma once

#include "ui/theme/theme.h"

#include "traces/store/trace.h"

#include <QWidget>

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
    [[nodiscard]] QCustomPlot& plot() { return *plot_; }

    [[nodiscard]] const QString& title() const { return title_; } // "Loss 0.512 after step 4"

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void titleChanged(const QString& title);
    void pressed(); // by a mouse: it has no keys of its own

private:
    void setPoints(const QVector<double>& steps, const QVector<double>& losses);

    QString title_;
    QCustomPlot* plot_;
    QCPItemText* emptyText_;
    Theme theme_;
};

} // namespace stagecraft::ui
