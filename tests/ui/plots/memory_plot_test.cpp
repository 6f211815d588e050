// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/plots/memory_plot.h"
#include "ui/plots/tickers.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QSignalSpy>
#include <qcustomplot.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

// The plot is opened with the simulation alone; the run's bytes, ranks and classes come bit by bit.
TEST_F(Memory, KeepsARunAndItsPredictionBelowTheTop)
{
    const auto highestSeen = [&] {
        double highest = 0;
        for (int i = 0; i < memory_.plot().graphCount(); ++i)
            for (const QCPGraphData& point : *memory_.plot().graph(i)->data()) highest = std::max(highest, point.value);
        return highest;
    };
    for (const std::optional<Rank> rank : {std::optional<Rank>(), std::optional(Rank{0}), std::optional(Rank{1})}) {
        const auto simulated = twoRanks();
        const auto measured = twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs, kMs}});
        const auto run = std::make_shared<traces::Trace>();
        run->info = measured->info;
        scene_.setSources({{simulated}, {run, {}, true}});
        memory_.setRank(rank);
        const auto grow = [&](auto&& add) {
            add();
            scene_.dataArrived();
            EXPECT_GE(memory_.plot().yAxis->range().upper, highestSeen());
        };
        for (const traces::Lane& lane : measured->lanes()) run->addLane(lane.info());
        grow([&] { run->append(traces::LaneId{0}, measured->lane(traces::LaneId{0}).slice(0)); });
        grow([&] { run->addMemory(Rank{0}, MemoryClass::Weights, 0, 5'000); });
        grow([&] { run->addMemory(Rank{0}, MemoryClass::Activations, kMs, 20'000); });
        EXPECT_GE(memory_.plot().yAxis->range().upper, rank == Rank{1} ? 0 : 25'000);
        grow([&] { run->append(traces::LaneId{1}, measured->lane(traces::LaneId{1}).slice(0)); });
        grow([&] { run->addMemory(Rank{1}, MemoryClass::Activations, 2 * kMs, 40'000); });
        EXPECT_GE(memory_.plot().yAxis->range().upper, rank == Rank{0} ? 25'000 : 40'000);
        EXPECT_TRUE(names().contains("simulated")) << "the prediction stays beside it";
        memory_.setRank(std::nullopt);
        // A simulation with more than the run has is seen whole as well.
        const auto larger = twoRanks();
        larger->addMemory(Rank{0}, MemoryClass::Weights, 0, 900'000);
        scene_.setSources({{larger}, {run, {}, true}});
        EXPECT_GE(memory_.plot().yAxis->range().upper, 900'000);
        EXPECT_GE(memory_.plot().yAxis->range().upper, highestSeen());
    }
}

TEST_F(Memory, ShowsThePeaksTextWholeWhereverThePeakIs)
{
    scene_.setSources({{twoRanks()}});
    const QCPItemText* text = nullptr;
    for (int i = 0; i < memory_.plot().itemCount(); ++i)
        if (const auto* item = qobject_cast<QCPItemText*>(memory_.plot().item(i)); item && item->text().startsWith("peak")) text = item;
    ASSERT_TRUE(text);
    for (const int width : {1000, 420, 360}) {
        memory_.resize(width, 150);
        for (const double begin : {0.999, 0.9, 0.5, 0.0, -0.4, -0.9}) { // the peak is at 1 ms: from the left edge to the right one
            scene_.axis().setRange({static_cast<TimeNs>(begin * kMs), static_cast<TimeNs>((begin + 2) * kMs)});
            memory_.plot().replot();
            ASSERT_TRUE(text->visible());
            const QRectF axes = memory_.plot().axisRect()->rect();
            EXPECT_GE(text->topLeft->pixelPosition().x(), axes.left() - 1) << width << ' ' << begin;
            EXPECT_LE(text->topRight->pixelPosition().x(), axes.right() + 2) << width << ' ' << begin;
            EXPECT_GE(text->topLeft->pixelPosition().y(), axes.top() - 1) << width << ' ' << begin;
        }
    }
}

// The pixel column of a cursor and the time it tells, in whichever view the mouse is, at every zoom.
TEST_F(Memory, HasItsCursorWhereTheTimelineHasIt)
{
    TimelineWidget timeline(scene_);
    timeline.resize(1000, 300);
    timeline.show();
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured, .start = 5'000'000'000'000})}});
    memory_.setMargins(timeline.headerWidth(), timeline.rightMargin());
    QObject::connect(&timeline, &TimelineWidget::hoverTimeChanged, &memory_, &MemoryPlot::setHoverTime);
    QObject::connect(&memory_, &MemoryPlot::hoverTimeChanged, &timeline, &TimelineWidget::setHoverTime);
    const QCPItemStraightLine* line = nullptr;
    for (int i = 0; i < memory_.plot().itemCount(); ++i)
        if (const auto* item = qobject_cast<QCPItemStraightLine*>(memory_.plot().item(i)); item && item->objectName() == "cursor") line = item;
    ASSERT_TRUE(line);
    const auto move = [](QWidget& widget, QPointF pos) {
        QMouseEvent event(QEvent::MouseMove, pos, widget.mapToGlobal(pos), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
        QApplication::sendEvent(&widget, &event);
    };
    const auto expectTogether = [&](double x, const char* where) {
        const HoverLayer::State& state = timeline.findChild<HoverLayer*>()->state();
        ASSERT_TRUE(state.cursor && line->visible()) << where << ' ' << x;
        EXPECT_EQ(std::floor(*state.cursor), std::floor(line->point1->pixelPosition().x())) << where << ' ' << x;
    };
    for (const TimeNs length : {TimeNs{20}, TimeNs{37}, TimeNs{997}, kMs / 7, 9 * kMs}) {
        scene_.axis().setRange({3 * kMs + 1, 3 * kMs + 1 + length});
        memory_.plot().replot();
        for (double x = std::ceil(timeline.headerWidth()) + 1; x < 980; x += 13.25) {
            move(timeline, {x, 200});
            expectTogether(x, "over the timeline");
            QEvent leave(QEvent::Leave);
            QApplication::sendEvent(&timeline, &leave);
            move(memory_.plot(), {x, 60});
            expectTogether(x, "over the plot");
            EXPECT_NEAR(*timeline.findChild<HoverLayer*>()->state().cursor, x, timeline.mapping().pixels(1) + 1);
        }
    }
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

// What is said in the plot, of the items that are seen.
QStringList saidIn(QCustomPlot& plot)
{
    QStringList said;
    for (int i = 0; i < plot.itemCount(); ++i)
        if (const auto* text = qobject_cast<QCPItemText*>(plot.item(i)); text && text->visible()) said << text->text();
    return said;
}

TEST_F(Memory, TellsWhatMakesUpThePeak)
{
    scene_.setSources({{twoRanks()}});
    EXPECT_TRUE(saidIn(memory_.plot()).contains("peak 200 B on rank 0\nactivations 200 B of 2 forwards, 0F0 to 0F1"))
        << saidIn(memory_.plot()).join(" | ").toStdString();
    memory_.setRank(Rank{1});
    EXPECT_TRUE(saidIn(memory_.plot()).contains("peak 100 B on rank 1\nactivations 100 B of 1F0"))
        << saidIn(memory_.plot()).join(" | ").toStdString();
}

// Neither a curve nor a number of the axis comes where the limit is told.
TEST_F(Memory, TellsTheLimitBesideTheAxis)
{
    const auto trace = twoRanks();
    trace->info.memoryLimit = 150;
    scene_.setSources({{trace}});
    QCustomPlot& plot = memory_.plot();
    plot.replot(QCustomPlot::rpImmediateRefresh);
    const QCPItemText* limit = nullptr;
    for (int i = 0; i < plot.itemCount(); ++i)
        if (const auto* text = qobject_cast<QCPItemText*>(plot.item(i)); text && text->text().startsWith("limit")) limit = text;
    ASSERT_NE(limit, nullptr);
    double widest = 0;
    for (const QString& number : plot.yAxis->tickVectorLabels())
        widest = std::max(widest, QFontMetricsF(plot.yAxis->tickLabelFont()).horizontalAdvance(number));
    EXPECT_GE(limit->left->pixelPosition().x(), 0);
    EXPECT_LT(limit->right->pixelPosition().x(), plot.axisRect()->left() - plot.yAxis->tickLabelPadding() - widest);
    EXPECT_NEAR(limit->left->pixelPosition().y(), plot.yAxis->coordToPixel(150), 1);
}

TEST_F(Memory, SaysNoMoreAlongItsAxisThanThereIsHeightFor)
{
    const auto trace = std::make_shared<traces::Trace>();
    const traces::LaneId lane = trace->addLane({Rank{0}, traces::LaneKind::Compute, 0, "rank 0"});
    trace->append(lane, {0, kMs, traces::makeAction(traces::ActionKind::Forward, traces::Stage{0}, traces::MicroBatch{0}), traces::Step{0}, {}});
    scene_.setSources({{trace}});
    const QFontMetricsF metrics(memory_.plot().yAxis->labelFont());
    for (const auto& [height, label] : {std::pair(300, "micro-batches in flight"), std::pair(110, "in flight")}) {
        memory_.resize(1000, height);
        EXPECT_EQ(memory_.plot().yAxis->label(), label);
        EXPECT_LT(metrics.horizontalAdvance(memory_.plot().yAxis->label()), height);
    }
}

TEST_F(Memory, MarksTheLimitAndWhereItIsBroken)
{
    const auto trace = twoRanks();
    trace->info.memoryLimit = 150;
    scene_.setSources({{trace}});
    EXPECT_TRUE(saidIn(memory_.plot()).contains("limit\n150 B"));
    EXPECT_TRUE(saidIn(memory_.plot()).contains("rank 0 runs out at 1 ms")) << saidIn(memory_.plot()).join(" | ").toStdString();
    memory_.setRank(Rank{1});
    EXPECT_TRUE(saidIn(memory_.plot()).contains("limit\n150 B")) << "it has room left";
    EXPECT_FALSE(saidIn(memory_.plot()).join(" ").contains("runs out"));

    const auto roomy = twoRanks();
    roomy->info.memoryLimit = 1'000'000;
    memory_.setRank(std::nullopt);
    scene_.setSources({{roomy}});
    EXPECT_FALSE(saidIn(memory_.plot()).join(" ").contains("limit")) << "far above the curves it would press them flat";
    EXPECT_LT(memory_.plot().yAxis->range().upper, 1000);
}

} // namespace
} // namespace stagecraft::ui
