// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/loss_plot.h"

#include <QVBoxLayout>
#include <qcustomplot.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {

LossPlot::LossPlot(QWidget* parent)
    : QWidget(parent), plot_(new QCustomPlot(this)), emptyText_(new QCPItemText(plot_)),
      theme_(Theme::of(ThemeKind::Light))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Loss of each step"));
    plot_->setAccessibleName(accessibleName());
    plot_->setFocusPolicy(Qt::NoFocus);
    connect(plot_, &QCustomPlot::mousePress, this, &LossPlot::pressed);
    plot_->addGraph();
    plot_->axisRect()->setMinimumMargins(QMargins(8, 8, 8, 4));
    plot_->yAxis->ticker()->setTickCount(2); // the plot is low
    plot_->yAxis->setNumberFormat(QStringLiteral("g"));
    plot_->yAxis->setNumberPrecision(3);
    const QSharedPointer<QCPAxisTickerFixed> whole(new QCPAxisTickerFixed); // a step is a whole number
    whole->setTickStep(1);
    whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    plot_->xAxis->setTicker(whole);
    emptyText_->position->setType(QCPItemPosition::ptAxisRectRatio);
    emptyText_->position->setCoords(0.5, 0.5);
    emptyText_->setText(tr("A run shows its loss here"));
    setTheme(theme_);
    setLosses({});
}

QSize LossPlot::sizeHint() const { return {260, 130}; }

QSize LossPlot::minimumSizeHint() const { return {160, 90}; }

void LossPlot::setTheme(const Theme& theme)
{
    theme_ = theme;
    applyTheme(*plot_, theme_);
    plot_->graph(0)->setPen(QPen(theme_.accent, 1.8));
    emptyText_->setColor(theme_.mutedText);
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void LossPlot::setTrace(const traces::Trace& trace)
{
    QVector<double> steps;
    QVector<double> losses;
    for (const traces::StepSpan& step : trace.steps()) {
        if (!step.loss) continue;
        steps << step.step.value;
        losses << *step.loss;
    }
    setPoints(steps, losses);
}

void LossPlot::setLosses(const std::vector<double>& losses)
{
    QVector<double> steps;
    for (std::size_t i = 0; i < losses.size(); ++i) steps << static_cast<double>(i);
    setPoints(steps, QVector<double>(losses.begin(), losses.end()));
}

void LossPlot::setPoints(const QVector<double>& steps, const QVector<double>& losses)
{
    QVector<double> values;
    QVector<double> finite;
    for (const double loss : losses) {
        values << (std::isfinite(loss) ? loss : qQNaN()); // the curve breaks there
        if (std::isfinite(loss)) finite << loss;
    }
    plot_->graph(0)->setData(steps, values, true);
    plot_->graph(0)->setScatterStyle(losses.size() <= 40 ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle());
    const bool any = !losses.empty();
    plot_->xAxis->setVisible(any);
    plot_->yAxis->setVisible(any);
    emptyText_->setVisible(!any);
    QString title = tr("Loss");
    if (any) {
        const QString value = std::isfinite(losses.back()) ? QString::number(losses.back(), 'g', 5) : tr("is not a number");
        title = tr("Loss %1 after step %2").arg(value).arg(steps.back());
        plot_->xAxis->setRange(steps.front() - 0.3, steps.back() + 0.3);
        if (!finite.isEmpty()) {
            const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
            const double room = std::max((*high - *low) * 0.1, std::abs(*high) * 0.01 + 1e-12);
            plot_->yAxis->setRange(*low - room, *high + room);
        }
    }
    if (title != title_) {
        title_ = title;
        plot_->setAccessibleDescription(title_);
        emit titleChanged(title_);
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace stagecraft::ui
