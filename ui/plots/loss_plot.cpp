// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/loss_plot.h"

#include <QVBoxLayout>
#include <qcustomplot.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stagecraft::ui {

LossPlot::LossPlot(QWidget* parent)
    : QWidget(parent), plot_(new QCustomPlot(this)), emptyText_(new QCPItemText(plot_)),
      shown_(1), theme_(Theme::of(ThemeKind::Light))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Loss of each step"));
    plot_->setAccessibleName(accessibleName());
    plot_->setFocusPolicy(Qt::NoFocus);
    connect(plot_, &QCustomPlot::mousePress, this, &LossPlot::pressed);
    plot_->addGraph();
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.85);
    plot_->legend->setFont(small);
    plot_->legend->setFillOrder(QCPLegend::foColumnsFirst);
    plot_->legend->setIconSize(18, 8);
    plot_->legend->setIconTextPadding(4);
    plot_->legend->setMargins(QMargins(8, 4, 4, 0));
    plot_->legend->setBrush(Qt::NoBrush);
    plot_->legend->setBorderPen(Qt::NoPen);
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
    paintGraphs();
    emptyText_->setColor(theme_.mutedText);
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

// Earlier runs are thinner and fainter, the newest of them dashed, so that the difference is not one of colour alone.
void LossPlot::paintGraphs()
{
    for (int i = 0; i < plot_->graphCount(); ++i) {
        QPen pen(i == 0 ? theme_.accent : theme_.mutedText, i == 0 ? 1.8 : 1.2);
        pen.setStyle(i == 0 ? Qt::SolidLine : i == 1 ? Qt::DashLine : Qt::DotLine);
        plot_->graph(i)->setPen(pen);
    }
    plot_->legend->setTextColor(theme_.text);
}

LossPlot::Points LossPlot::pointsOf(const traces::Trace& trace)
{
    Points points;
    for (const traces::StepSpan& step : trace.steps()) {
        if (!step.loss) continue;
        points.steps << step.step.value;
        points.losses << *step.loss;
    }
    return points;
}

void LossPlot::setTrace(const traces::Trace& trace) { setPoints(pointsOf(trace)); }

void LossPlot::setLosses(const std::vector<double>& losses)
{
    Points points;
    for (std::size_t i = 0; i < losses.size(); ++i) points.steps << static_cast<double>(i);
    points.losses = QVector<double>(losses.begin(), losses.end());
    setPoints(points);
}

void LossPlot::setEarlier(const QString& name, const std::vector<EarlierRun>& runs)
{
    constexpr std::size_t kMost = 2; // more curves than that are a tangle
    while (plot_->graphCount() > 1) plot_->removeGraph(1);
    shown_.resize(1);
    plot_->graph(0)->setName(name);
    for (const EarlierRun& run : runs) {
        if (shown_.size() > kMost) break;
        Points points = pointsOf(*run.trace);
        if (points.steps.isEmpty()) continue;
        QCPGraph* const graph = plot_->addGraph();
        graph->setName(run.name);
        shown_.push_back(std::move(points));
        draw(static_cast<int>(shown_.size()) - 1, shown_.back());
    }
    showLegend(shown_.size() > 1);
    paintGraphs();
    fitAxes();
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

// A line above the curves, which has its room only where there is something to tell apart.
void LossPlot::showLegend(bool shown)
{
    if (plot_->legend->visible() == shown) return;
    plot_->legend->setVisible(shown);
    QCPLayoutGrid& grid = *plot_->plotLayout();
    if (shown) {
        grid.insertRow(0);
        grid.addElement(0, 0, plot_->legend);
        grid.setRowStretchFactor(0, 0.001);
    } else {
        grid.take(plot_->legend);
        grid.simplify();
        plot_->axisRect()->insetLayout()->addElement(plot_->legend, Qt::AlignTop);
    }
}

void LossPlot::draw(int graph, const Points& points)
{
    QVector<double> values;
    for (const double loss : points.losses) values << (std::isfinite(loss) ? loss : qQNaN());
    plot_->graph(graph)->setData(points.steps, values, true);
}

void LossPlot::fitAxes()
{
    QVector<double> steps;
    QVector<double> finite;
    for (const Points& points : shown_) {
        steps << points.steps;
        std::copy_if(points.losses.begin(), points.losses.end(), std::back_inserter(finite), [](double loss) { return std::isfinite(loss); });
    }
    plot_->xAxis->setVisible(!steps.isEmpty());
    plot_->yAxis->setVisible(!steps.isEmpty());
    emptyText_->setVisible(steps.isEmpty());
    if (!steps.isEmpty()) {
        const auto [first, last] = std::minmax_element(steps.begin(), steps.end());
        plot_->xAxis->setRange(*first - 0.3, *last + 0.3);
    }
    if (!finite.isEmpty()) {
        const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
        const double room = std::max((*high - *low) * 0.1, std::abs(*high) * 0.01 + 1e-12);
        plot_->yAxis->setRange(*low - room, *high + room);
    }
}

void LossPlot::setPoints(const Points& points)
{
    shown_.front() = points;
    draw(0, points);
    plot_->graph(0)->setScatterStyle(points.losses.size() <= 40 ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle());
    fitAxes();
    QString title = tr("Loss");
    if (!points.losses.isEmpty()) {
        const QString value = std::isfinite(points.losses.back()) ? QString::number(points.losses.back(), 'g', 5) : tr("is not a number");
        title = tr("Loss %1 after step %2").arg(value).arg(points.steps.back());
    }
    if (title != title_) {
        title_ = title;
        plot_->setAccessibleDescription(title_);
        emit titleChanged(title_);
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace stagecraft::ui
