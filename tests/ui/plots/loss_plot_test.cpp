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

// What came before stays beside it: two runs at most, each with its name, and all of them in sight.
TEST(LossPlot, ShowsEarlierRunsBesideTheNewOne)
{
    const auto run = [](std::initializer_list<double> losses) {
        auto trace = std::make_shared<traces::Trace>();
        int step = 0;
        for (const double loss : losses) trace->addStep({.step = traces::Step{step++}, .span = {}, .loss = loss});
        return trace;
    };
    LossPlot loss;
    loss.setTrace(*run({3, 2}));
    EXPECT_FALSE(loss.plot().legend->visible());
    loss.setEarlier("pipedream, 2 ranks", {{"1f1b, 2 ranks", run({3, 1, 0.5})}, {"nothing", run({})}, {"gpipe, 2 ranks", run({9})}, {"too old", run({1})}});
    ASSERT_EQ(loss.plot().graphCount(), 3);
    EXPECT_TRUE(loss.plot().legend->visible());
    EXPECT_EQ(loss.plot().graph(0)->name(), "pipedream, 2 ranks");
    EXPECT_EQ(loss.plot().graph(1)->name(), "1f1b, 2 ranks");
    EXPECT_EQ(loss.plot().graph(1)->dataCount(), 3);
    EXPECT_EQ(loss.plot().graph(2)->name(), "gpipe, 2 ranks");
    EXPECT_NE(loss.plot().graph(1)->pen().style(), loss.plot().graph(0)->pen().style());
    EXPECT_GT(loss.plot().xAxis->range().upper, 2);
    EXPECT_GT(loss.plot().yAxis->range().upper, 9);
    EXPECT_LT(loss.plot().yAxis->range().lower, 0.5);

    loss.setTrace(*run({3, 2, 1.5, 1.2})); // it goes on
    EXPECT_EQ(loss.plot().graph(1)->dataCount(), 3);
    EXPECT_GT(loss.plot().xAxis->range().upper, 3);
    EXPECT_EQ(loss.title(), "Loss 1.2 after step 3");
    loss.setEarlier("1f1b, 2 ranks", {});
    EXPECT_EQ(loss.plot().graphCount(), 1);
    EXPECT_FALSE(loss.plot().legend->visible());
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
