// SPDX-License-Identifier: GPL-3.0-or-later
//
// The loss of each step of a run, as a small curve with its last value.
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

    QSize sizeHint() const override;

private:
    QCustomPlot* plot_;
    QCPItemText* lastText_;
    QCPItemText* emptyText_;
    Theme theme_;
};

} // namespace stagecraft::ui
