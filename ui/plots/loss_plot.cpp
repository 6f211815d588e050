// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/loss_plot.h"

#include <QVBoxLayout>
#include <qcustomplot.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {

LossPlot::LossPlot(QWidget* parent)
    : QWidget(parent), plot_(new QCustomPlot(this)), lastText_(new QCPItemText(plot_)), emptyText_(new QCPItemText(plot_)),
      theme_(Theme::of(ThemeKind::Light))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Loss of each step"));
    plot_->setAccessibleName(accessibleName());
    plot_->addGraph();
    plot_->axisRect()->setMinimumMargins(QMargins(8, 8, 8, 4));
    plot_->yAxis->ticker()->setTickCount(2); // the plot is low
    plot_->yAxis->setNumberFormat(QStringLiteral("g"));
    plot_->yAxis->setNumberPrecision(4);
    const QSharedPointer<QCPAxisTickerFixed> whole(new QCPAxisTickerFixed); // a step is a whole number
    whole->setTickStep(1);
    whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    plot_->xAxis->setTicker(whole);
    plot_->xAxis->setLabel(tr("step"));
    lastText_->setPositionAlignment(Qt::AlignRight | Qt::AlignTop);
    lastText_->position->setType(QCPItemPosition::ptAxisRectRatio);
    lastText_->position->setCoords(0.98, 0.04);
    emptyText_->position->setType(QCPItemPosition::ptAxisRectRatio);
    emptyText_->position->setCoords(0.5, 0.5);
    emptyText_->setText(tr("A run shows its loss here"));
    setTheme(theme_);
    setLosses({});
}

QSize LossPlot::sizeHint() const { return {260, 130}; }

void LossPlot::setTheme(const Theme& theme)
{
    theme_ = theme;
    applyTheme(*plot_, theme_);
    plot_->graph(0)->setPen(QPen(theme_.accent, 1.8));
    lastText_->setColor(theme_.text);
    emptyText_->setColor(theme_.mutedText);
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void LossPlot::setTrace(const traces::Trace& trace)
{
    std::vector<double> losses;
    for (const traces::StepSpan& step : trace.steps())
        if (step.loss) losses.push_back(*step.loss);
    setLosses(losses);
}

void LossPlot::setLosses(const std::vector<double>& losses)
{
    QVector<double> keys;
    QVector<double> values;
    QVector<double> finite;
    for (std::size_t i = 0; i < losses.size(); ++i) {
        keys << static_cast<double>(i);
        values << (std::isfinite(losses[i]) ? losses[i] : qQNaN()); // the curve breaks there
        if (std::isfinite(losses[i])) finite << losses[i];
    }
    plot_->graph(0)->setData(keys, values, true);
    plot_->graph(0)->setScatterStyle(losses.size() <= 40 ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle());
    const bool any = !losses.empty();
    plot_->xAxis->setVisible(any);
    plot_->yAxis->setVisible(any);
    emptyText_->setVisible(!any);
    lastText_->setVisible(any);
    if (any) {
        lastText_->setText(std::isfinite(losses.back()) ? tr("loss %1").arg(losses.back(), 0, 'g', 5) : tr("loss is not a number"));
        plot_->xAxis->setRange(-0.3, static_cast<double>(losses.size()) - 0.7);
        if (!finite.isEmpty()) {
            const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
            const double room = std::max((*high - *low) * 0.15, std::abs(*high) * 0.01 + 1e-12);
            plot_->yAxis->setRange(*low - room, *high + 2 * room);
        }
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace stagecraft::ui
