// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/duration_histogram.h"

#include "ui/bridge/text.h"
#include "ui/plots/tickers.h"

#include <QVBoxLayout>
#include <qcustomplot.h>

#include <algorithm>

namespace stagecraft::ui {

using traces::ActionStatistics;
using traces::Histogram;
using traces::TimeNs;

DurationHistogram::DurationHistogram(QWidget* parent)
    : QWidget(parent), plot_(new QCustomPlot(this)), bars_(new QCPBars(plot_->xAxis, plot_->yAxis)), middleHalf_(new QCPItemRect(plot_)),
      median_(new QCPItemStraightLine(plot_)), text_(new QCPItemText(plot_)), theme_(Theme::of(ThemeKind::Light))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Histogram of durations"));
    plot_->setAccessibleName(accessibleName());
    plot_->setFocusPolicy(Qt::NoFocus);
    connect(plot_, &QCustomPlot::mousePress, this, &DurationHistogram::pressed);

    plot_->axisRect()->setMinimumMargins(QMargins(8, 8, 14, 4));
    plot_->xAxis->setTicker(QSharedPointer<QCPAxisTicker>(new DurationTicker));
    plot_->xAxis->ticker()->setTickCount(3); // their labels are wide
    const QSharedPointer<QCPAxisTickerFixed> whole(new QCPAxisTickerFixed); // actions are counted
    whole->setTickStep(1);
    whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    whole->setTickCount(3);
    plot_->yAxis->setTicker(whole);
    plot_->yAxis->setNumberFormat(QStringLiteral("f"));
    plot_->yAxis->setNumberPrecision(0);
    bars_->setWidthType(QCPBars::wtPlotCoords);

    // Behind the bars: the band is as high as the plot.
    middleHalf_->setLayer(QStringLiteral("background"));
    for (QCPItemPosition* corner : {middleHalf_->topLeft, middleHalf_->bottomRight}) {
        corner->setTypeX(QCPItemPosition::ptPlotCoords);
        corner->setTypeY(QCPItemPosition::ptAxisRectRatio);
        corner->setAxisRect(plot_->axisRect());
    }
    middleHalf_->setPen(Qt::NoPen);
    text_->position->setType(QCPItemPosition::ptAxisRectRatio);
    text_->position->setCoords(0.5, 0.5);
    setTheme(theme_);
    clear({});
}

QSize DurationHistogram::sizeHint() const { return {300, 150}; }
QSize DurationHistogram::minimumSizeHint() const { return {160, 90}; }

void DurationHistogram::setTheme(const Theme& theme)
{
    theme_ = theme;
    applyTheme(*plot_, theme_);
    text_->setColor(theme_.mutedText);
    median_->setPen(QPen(theme_.text, 1.2, Qt::DashLine));
    middleHalf_->setBrush(theme_.lane);
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void DurationHistogram::setMarksVisible(bool visible)
{
    for (QCPLayerable* each : {static_cast<QCPLayerable*>(bars_), static_cast<QCPLayerable*>(middleHalf_), static_cast<QCPLayerable*>(median_),
                               static_cast<QCPLayerable*>(plot_->xAxis), static_cast<QCPLayerable*>(plot_->yAxis)})
        each->setVisible(visible);
    text_->setVisible(!visible);
}

void DurationHistogram::clear(const QString& why)
{
    setMarksVisible(false);
    text_->setText(why);
    plot_->setAccessibleDescription(why);
    plot_->setToolTip({});
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void DurationHistogram::show(const Histogram& histogram, const ActionStatistics& statistics, const QColor& colour)
{
    setMarksVisible(true);
    QVector<double> places;
    QVector<double> counts;
    const auto least = static_cast<double>(histogram.from);
    auto width = static_cast<double>(histogram.width);
    auto end = least + width * static_cast<double>(histogram.counts.size());
    double room = (end - least) * 0.03;
    if (statistics.least == statistics.most) { // one value has no width: a bar that can be seen, in the middle
        room = std::max(least * 0.05, 10.0);
        width = room / 4;
        places << least;
        end = least;
    } else {
        for (std::size_t i = 0; i < histogram.counts.size(); ++i) places << least + width * (static_cast<double>(i) + 0.5);
    }
    for (const std::size_t count : histogram.counts) counts << static_cast<double>(count);
    bars_->setData(places, counts, true);
    bars_->setWidth(width);
    bars_->setBrush(colour);
    bars_->setPen(QPen(theme_.base, 1)); // tells neighbours apart
    plot_->xAxis->setRange(least - room, end + room);
    plot_->yAxis->setRange(0, *std::max_element(counts.begin(), counts.end()) * 1.08);
    middleHalf_->topLeft->setCoords(static_cast<double>(statistics.lowerQuartile), 0);
    middleHalf_->bottomRight->setCoords(static_cast<double>(statistics.upperQuartile), 1);
    median_->point1->setCoords(static_cast<double>(statistics.median), 0);
    median_->point2->setCoords(static_cast<double>(statistics.median), 1);

    QStringList said;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
        const TimeNs from = histogram.from + static_cast<TimeNs>(i) * histogram.width;
        if (histogram.counts[i] > 0)
            said << tr("%1 from %2 on").arg(histogram.counts[i]).arg(toQt(traces::formatDuration(from)));
    }
    plot_->setAccessibleDescription(said.join(QStringLiteral(", ")));
    plot_->setToolTip(tr("How many took how long. The dashed line is the median, the band behind the bars the middle half."));
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace stagecraft::ui
