// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/plots/loss_plot.h"

#include <qcustomplot.h>

#include <gtest/gtest.h>

#include <cmath>

namespace stagecraft::ui {
namespace {

QString shownText(LossPlot& loss)
{
    QStringList all;
    for (int i = 0; i < loss.plot().itemCount(); ++i)
        if (auto* text = qobject_cast<QCPItemText*>(loss.plot().item(i)); text && text->visible()) all << text->text();
    return all.join(QLatin1Char('|'));
}

TEST(LossPlot, DrawsTheLossOfEachStep)
{
    LossPlot loss;
    loss.setTrace(*support::twoRanks({.unit = {support::kMs, support::kMs, support::kMs}})); // 1, 1/2, 1/3
    ASSERT_EQ(loss.plot().graph(0)->dataCount(), 3);
    EXPECT_DOUBLE_EQ(loss.plot().graph(0)->data()->at(1)->value, 0.5);
    EXPECT_EQ(loss.title(), "Loss 0.33333 after step 2");
    EXPECT_EQ(shownText(loss), ""); // nothing lies over the curve
}

TEST(LossPlot, SaysWhatItWaitsFor)
{
    LossPlot loss;
    EXPECT_EQ(shownText(loss), "A run shows its loss here");
}

TEST(LossPlot, BreaksAtALossThatIsNoNumber)
{
    LossPlot loss;
    loss.setLosses({1.0, NAN, INFINITY});
    EXPECT_EQ(loss.title(), "Loss is not a number after step 2");
    EXPECT_TRUE(std::isnan(loss.plot().graph(0)->data()->at(2)->value));
    EXPECT_TRUE(QCPRange::validRange(loss.plot().yAxis->range()));
}

TEST(LossPlot, NumbersTheStepsAsTheTraceDoes)
{
    traces::Trace resumed;
    for (const int step : {7, 8}) resumed.addStep({.step = traces::Step{step}, .span = {}, .loss = 2.5});
    LossPlot loss;
    loss.setTrace(resumed);
    EXPECT_EQ(loss.title(), "Loss 2.5 after step 8");
    EXPECT_DOUBLE_EQ(loss.plot().graph(0)->data()->at(0)->key, 7);
}

TEST(LossPlot, KeepsRoomForItsCurveWhereItIsLow)
{
    LossPlot loss;
    loss.setLosses({1.0, 0.5, 0.25});
    loss.resize(loss.minimumSizeHint());
    loss.show();
    loss.plot().replot();
    EXPECT_GT(loss.plot().axisRect()->height(), 45);
}

} // namespace
} // namespace stagecraft::ui
