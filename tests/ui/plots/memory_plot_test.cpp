// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/plots/memory_plot.h"
#include "ui/plots/tickers.h"

#include <QApplication>
#include <QSignalSpy>
#include <qcustomplot.h>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::MemoryClass;
using traces::Rank;
using traces::TimeNs;

class Memory : public ::testing::Test {
protected:
    Memory() : memory_(scene_)
    {
        memory_.resize(1000, 200);
        memory_.setMargins(130, 20);
        memory_.show();
    }
    QStringList names()
    {
        QStringList all;
        for (int i = 0; i < memory_.plot().graphCount(); ++i) all << memory_.plot().graph(i)->name();
        return all;
    }
    double value(int graph, double ms)
    {
        const auto data = memory_.plot().graph(graph)->data();
        auto at = data->findEnd(ms * kMs, false);
        return at == data->constBegin() ? 0 : (at - 1)->value;
    }
    TimelineScene scene_;
    MemoryPlot memory_;
};

TEST_F(Memory, ShowsTheTotalOfEachRank)
{
    scene_.setSources({{twoRanks()}});
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
    EXPECT_EQ(value(0, 0.5), 100);
    EXPECT_EQ(value(0, 3), 200);
    EXPECT_EQ(value(0, 7), 100);
    EXPECT_EQ(value(1, 0.5), 0);
    EXPECT_EQ(value(1, 3), 100);
}

TEST_F(Memory, SharesTheTimeAxis)
{
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured, .start = 5'000'000'000'000})}});
    scene_.axis().setRange({2 * kMs, 6 * kMs});
    EXPECT_DOUBLE_EQ(memory_.plot().xAxis->range().lower, 2e6);
    EXPECT_DOUBLE_EQ(memory_.plot().xAxis->range().upper, 6e6);
    EXPECT_EQ(value(0, 3), 200); // shown time starts at 0
    memory_.plot().replot();
    EXPECT_EQ(memory_.plot().axisRect()->left(), 130);
    EXPECT_EQ(memory_.plot().axisRect()->right(), 1000 - 20 - 1);
}

TEST_F(Memory, StacksTheClassesOfAChosenRank)
{
    const auto trace = twoRanks();
    trace->addMemory(Rank{0}, MemoryClass::Weights, 0, 1000);
    scene_.setSources({{trace}});
    memory_.setRank(Rank{0});
    EXPECT_EQ(names(), (QStringList{"weights", "activations"}));
    EXPECT_EQ(value(0, 3), 1000);
    EXPECT_EQ(value(1, 3), 1200);
    EXPECT_EQ(memory_.plot().graph(1)->channelFillGraph(), memory_.plot().graph(0));
    memory_.setRank(std::nullopt);
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
}

TEST_F(Memory, ShowsThePredictionBesideAMeasuredRank)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = {2 * kMs}})}});
    memory_.setRank(Rank{0});
    EXPECT_EQ(names(), (QStringList{"activations", "simulated"}));
    EXPECT_EQ(value(0, 3), 200);
    EXPECT_EQ(value(1, 1.5), 200);
    EXPECT_EQ(value(1, 7), 100);
}

TEST_F(Memory, GrowsWithTheTrace)
{
    const auto trace = twoRanks({.label = traces::TraceLabel::Measured});
    scene_.setSources({{trace, {}, true}});
    const int before = memory_.plot().graph(0)->dataCount();
    trace->addMemory(Rank{0}, MemoryClass::Activations, 12 * kMs, 700);
    trace->addMemory(Rank{2}, MemoryClass::Activations, 12 * kMs, 50); // a rank that had nothing yet
    scene_.dataArrived();
    EXPECT_GT(memory_.plot().graph(0)->dataCount(), before);
    EXPECT_EQ(value(0, 12.5), 700);
    EXPECT_EQ(value(0, 3), 200);
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1", "rank 2"}));
    EXPECT_GE(memory_.plot().yAxis->range().upper, 700);
}

TEST_F(Memory, TellsTheValuesUnderTheCursor)
{
    scene_.setSources({{twoRanks()}});
    memory_.setHoverTime(3 * kMs);
    EXPECT_TRUE(names()[0].endsWith("200 B")) << names()[0].toStdString();
    EXPECT_TRUE(names()[1].endsWith("100 B"));
    memory_.setHoverTime(std::nullopt);
    EXPECT_EQ(names()[0], "rank 0");
}

TEST_F(Memory, CountsMicroBatchesWhereNoBytesAreRecorded)
{
    const auto measured = twoRanks();
    auto counted = std::make_shared<traces::Trace>();
    counted->info = measured->info;
    for (const traces::Lane& lane : measured->lanes()) {
        const auto id = counted->addLane(lane.info());
        for (std::size_t i = 0; i < lane.size(); ++i) counted->append(id, lane.slice(i));
    }
    scene_.setSources({{counted}});
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
    EXPECT_EQ(value(0, 0.5), 1);
    EXPECT_EQ(value(0, 5), 2); // both forwards, no backward done
    EXPECT_EQ(value(0, 6.5), 1);
    EXPECT_EQ(value(1, 4.5), 1);
    EXPECT_EQ(value(1, 8), 0);
    EXPECT_EQ(memory_.plot().yAxis->label(), "micro-batches in flight");
    memory_.setRank(Rank{1});
    EXPECT_EQ(names(), (QStringList{"rank 1"}));
    memory_.setRank(std::nullopt);

    counted->info.chunks = 2; // the two stages are halves of a rank
    scene_.setSources({{counted}});
    EXPECT_EQ(value(0, 5), 1);

    counted->addMemory(Rank{0}, MemoryClass::Activations, 0, 300); // the first bytes take the place of counts
    scene_.dataArrived();
    EXPECT_EQ(value(0, 5), 300);
    EXPECT_EQ(memory_.plot().yAxis->label(), "");
}

TEST_F(Memory, ShowsThePredictionOfAllRanks)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = {2 * kMs}})}});
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1", "simulated", names().last()}));
    EXPECT_EQ(value(2, 1.5), 200); // simulated, rank 0
    EXPECT_EQ(value(3, 1.5), 100);
    EXPECT_EQ(memory_.plot().legend->itemCount(), 3);
}

TEST_F(Memory, ShowsThePredictionInEveryOneOfManySteps)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = std::vector<TimeNs>(100, kMs)})}});
    memory_.setRank(Rank{0});
    scene_.axis().setRange({90 * 9 * kMs, 91 * 9 * kMs});
    EXPECT_EQ(names().last(), "simulated");
    EXPECT_EQ(value(1, 90 * 9 + 3), 200);
}

TEST_F(Memory, KeepsTheLegendWithinTheAxes)
{
    const auto trace = twoRanks();
    for (int rank = 2; rank < 8; ++rank) trace->addMemory(Rank{rank}, MemoryClass::Activations, 0, 1000);
    scene_.setSources({{trace}});
    memory_.resize(560, 200);
    memory_.setHoverTime(3 * kMs); // values make the entries wider
    memory_.plot().replot();
    const QRect legend = memory_.plot().legend->outerRect();
    EXPECT_TRUE(memory_.plot().axisRect()->rect().contains(legend)) << legend.left() << " " << legend.right();
}

TEST_F(Memory, SpeaksUpWhenTheMouseMoves)
{
    scene_.setSources({{twoRanks()}});
    memory_.plot().replot();
    QSignalSpy time(&memory_, &MemoryPlot::hoverTimeChanged);
    const QPointF pos(memory_.plot().xAxis->coordToPixel(4e6), 60);
    QMouseEvent move(QEvent::MouseMove, pos, pos, Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&memory_.plot(), &move);
    ASSERT_EQ(time.count(), 1);
    EXPECT_NEAR(static_cast<double>(*time[0][0].value<std::optional<TimeNs>>()), 4e6, 2e4);
}

TEST_F(Memory, ReplotsOncePerTurnOfTheEventLoop)
{
    scene_.setSources({{twoRanks()}});
    QApplication::processEvents();
    QSignalSpy plotted(&memory_.plot(), &QCustomPlot::afterReplot);
    for (int i = 1; i < 20; ++i) {
        scene_.axis().zoom(0.95, 4 * kMs);
        memory_.setHoverTime(i * kMs / 4);
    }
    EXPECT_EQ(plotted.count(), 0);
    QApplication::processEvents();
    EXPECT_EQ(plotted.count(), 1);
}

TEST_F(Memory, SaysSoWhenNothingIsRecorded)
{
    const auto trace = std::make_shared<traces::Trace>();
    const auto lane = trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    trace->append(lane, {.begin = 0, .end = 10, .action = {}, .step = {}, .text = trace->intern("kernel")});
    scene_.setSources({{trace}});
    bool said = false;
    for (int i = 0; i < memory_.plot().itemCount(); ++i)
        if (auto* text = qobject_cast<QCPItemText*>(memory_.plot().item(i))) said |= text->visible() && text->text().contains("No memory");
    EXPECT_TRUE(said);
}

TEST(ByteTicker, UsesRoundBinarySizes)
{
    QCustomPlot plot;
    const QSharedPointer<ByteTicker> ticker(new ByteTicker);
    ticker->setTickCount(4);
    QVector<double> ticks;
    QVector<QString> labels;
    ticker->generate(QCPRange(0, 36.0 * 1024 * 1024), QLocale(), QLatin1Char('g'), 6, ticks, nullptr, &labels);
    EXPECT_TRUE(labels.contains("20 MiB")) << labels.join(", ").toStdString();
    EXPECT_TRUE(labels.contains("0"));
}

} // namespace
} // namespace stagecraft::ui
