// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/duration_histogram.h"
#include "ui/plots/tickers.h"

#include <qcustomplot.h>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using traces::ActionStatistics;
using traces::Histogram;

QStringList xLabels(DurationHistogram& histogram)
{
    histogram.resize(300, 150);
    histogram.plot().resize(300, 150);
    histogram.plot().replot();
    return QStringList(histogram.plot().xAxis->tickVectorLabels());
}

TEST(DurationHistogram, HasABarInTheMiddleOfEachInterval)
{
    DurationHistogram histogram;
    histogram.show({.from = 1'000'000, .width = 500'000, .counts = {3, 0, 1}},
                   {.count = 4, .median = 1'100'000, .lowerQuartile = 1'050'000, .upperQuartile = 1'200'000, .p95 = 2'200'000, .least = 1'000'000, .most = 2'200'000},
                   Qt::blue);
    ASSERT_EQ(histogram.bars().dataCount(), 3);
    EXPECT_DOUBLE_EQ(histogram.bars().data()->at(0)->key, 1'250'000);
    EXPECT_DOUBLE_EQ(histogram.bars().data()->at(2)->value, 1);
    EXPECT_DOUBLE_EQ(histogram.bars().width(), 500'000);
    EXPECT_LT(histogram.plot().xAxis->range().lower, 1'000'000);
    EXPECT_GT(histogram.plot().xAxis->range().upper, 2'500'000);
    EXPECT_EQ(histogram.plot().accessibleDescription().toStdString(), "3 from 1 ms on, 1 from 2 ms on");
    const QStringList labels = xLabels(histogram);
    EXPECT_GE(labels.size(), 2);
    for (const QString& label : labels) EXPECT_TRUE(label.endsWith(" ms")) << label.toStdString();
    EXPECT_EQ(QSet<QString>(labels.begin(), labels.end()).size(), labels.size()) << "each says another time";
}

// Ticks at steps of 2.5 ms: 12.5 is not 13.
TEST(DurationHistogram, TellsEachTickAsItIs)
{
    DurationHistogram histogram;
    histogram.show({.from = 8'600'000, .width = 1'000'000, .counts = {4, 13, 15, 17, 11, 3, 1}},
                   {.count = 64, .median = 11'700'000, .lowerQuartile = 10'500'000, .upperQuartile = 12'600'000, .least = 8'600'000, .most = 15'500'000}, Qt::blue);
    const QStringList labels = xLabels(histogram);
    const QVector<double> ticks = histogram.plot().xAxis->tickVector();
    ASSERT_EQ(labels.size(), ticks.size());
    for (int i = 0; i < labels.size(); ++i) EXPECT_DOUBLE_EQ(labels[i].chopped(3).toDouble() * 1e6, ticks[i]) << labels[i].toStdString();
}

// A simulation without jitter: all take the same, and the bar can be seen all the same.
TEST(DurationHistogram, ShowsOneValueAsABarThatCanBeSeen)
{
    DurationHistogram histogram;
    histogram.show({.from = 51'770'000, .width = 1, .counts = {8}}, {.count = 8, .median = 51'770'000, .least = 51'770'000, .most = 51'770'000}, Qt::blue);
    ASSERT_EQ(histogram.bars().dataCount(), 1);
    EXPECT_GT(histogram.bars().width() / histogram.plot().xAxis->range().size(), 0.05);
    EXPECT_NEAR(histogram.plot().xAxis->range().center(), 51'770'000, 1);
}

TEST(DurationHistogram, SaysWhyItIsEmpty)
{
    DurationHistogram histogram;
    histogram.clear("No actions to count");
    EXPECT_FALSE(histogram.plot().xAxis->visible());
    EXPECT_EQ(histogram.plot().accessibleDescription(), "No actions to count");
}

} // namespace
} // namespace stagecraft::ui
