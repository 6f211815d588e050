// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/plots/memory_plot.h"
#include "ui/plots/tickers.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/timeline_widget.h"

#include <QApplication>
#include <QComboBox>
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

// Two cards of 1000 bytes; the first has both ranks and 300 bytes of others.
std::shared_ptr<traces::Trace> onGpus()
{
    const auto trace = twoRanks({.label = traces::TraceLabel::Measured});
    const traces::GpuId first = trace->addGpu({.number = 0, .name = "H200", .total = 1000, .ranks = {Rank{0}, Rank{1}}});
    const traces::GpuId second = trace->addGpu({.number = 1, .name = "H200", .total = 1000, .ranks = {Rank{2}}});
    trace->addGpuMemory(first, 0, {.active = 100, .reserved = 200, .used = 500});
    trace->addGpuMemory(first, 2 * kMs, {.active = 380, .reserved = 400, .used = 700});
    trace->addGpuMemory(first, 5 * kMs, {.active = 50, .reserved = 400, .used = 700});
    trace->addGpuMemory(second, 0, {.active = 10, .reserved = 20, .used = 30});
    return trace;
}

QComboBox* chooserOf(MemoryPlot& memory) { return memory.findChild<QComboBox*>("memoryChooser"); }

void choose(MemoryPlot& memory, const QString& entry)
{
    QComboBox* chooser = chooserOf(memory);
    chooser->setCurrentIndex(chooser->findText(entry));
    emit chooser->activated(chooser->currentIndex());
}

TEST_F(Memory, OffersGpusWhereTheTraceKnowsSome)
{
    scene_.setSources({{twoRanks()}});
    EXPECT_FALSE(chooserOf(memory_)->isVisible());
    scene_.setSources({{onGpus()}});
    ASSERT_TRUE(chooserOf(memory_)->isVisible());
    QStringList entries;
    for (int i = 0; i < chooserOf(memory_)->count(); ++i) entries << chooserOf(memory_)->itemText(i);
    EXPECT_EQ(entries, (QStringList{"Ranks", "GPUs", "GPU 0", "GPU 1"}));
    EXPECT_EQ(chooserOf(memory_)->currentText(), "Ranks");
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
    EXPECT_EQ(chooserOf(memory_)->itemData(2, Qt::ToolTipRole).toString(), "H200, with ranks 0, 1");
    // what curves and the axis' numbers have is left to them
    EXPECT_LE(chooserOf(memory_)->geometry().right(), 130 - 50);
    EXPECT_LT(chooserOf(memory_)->geometry().bottom(), memory_.height());
}

TEST_F(Memory, StacksThePartsOfAGpu)
{
    scene_.setSources({{onGpus()}});
    choose(memory_, "GPU 0");
    EXPECT_EQ(names(), (QStringList{"active", "reserved, unused", "other"}));
    EXPECT_EQ(value(0, 1), 100);
    EXPECT_EQ(value(1, 1), 200);
    EXPECT_EQ(value(2, 1), 500);
    EXPECT_EQ(value(0, 3), 380);
    EXPECT_EQ(value(2, 6), 700);
    EXPECT_EQ(memory_.plot().graph(2)->channelFillGraph(), memory_.plot().graph(1));
    EXPECT_TRUE(saidIn(memory_.plot()).contains("peak 700 B of 1000 B on GPU 0\nactive 380 B, reserved but unused 20 B, other 300 B"))
        << saidIn(memory_.plot()).join(" | ").toStdString();
    EXPECT_TRUE(saidIn(memory_.plot()).contains("total\n1000 B")) << "the curves come near it";
    memory_.setHoverTime(6 * kMs);
    EXPECT_EQ(names(), (QStringList{"active  50 B", "reserved, unused  350 B", "other  300 B"}));
    memory_.setHoverTime(std::nullopt);
    choose(memory_, "Ranks");
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
}

TEST_F(Memory, ShowsWhatIsUsedOfEachGpu)
{
    scene_.setSources({{onGpus()}});
    choose(memory_, "GPUs");
    EXPECT_EQ(names(), (QStringList{"GPU 0", "GPU 1"}));
    EXPECT_EQ(value(0, 3), 700);
    EXPECT_EQ(value(1, 3), 30);
    memory_.setHoverTime(1 * kMs);
    EXPECT_EQ(names(), (QStringList{"GPU 0  500 B", "GPU 1  30 B"}));
}

TEST_F(Memory, FollowsASelectedRankToItsGpu)
{
    scene_.setSources({{onGpus()}});
    choose(memory_, "GPU 1");
    EXPECT_EQ(value(2, 3), 30);
    memory_.setRank(Rank{1});
    EXPECT_EQ(chooserOf(memory_)->currentText(), "GPU 0");
    EXPECT_EQ(value(2, 3), 700);
    memory_.setRank(std::nullopt);
    EXPECT_EQ(chooserOf(memory_)->currentText(), "GPU 0");
    choose(memory_, "Ranks");
    memory_.setRank(Rank{0});
    EXPECT_EQ(names(), (QStringList{"activations"}));
}

// The choice stays: for the next run, whose first records bring its GPUs.
TEST_F(Memory, KeepsTheChoiceWhileARunGrows)
{
    scene_.setSources({{onGpus()}});
    choose(memory_, "GPU 0");
    const auto run = twoRanks({.label = traces::TraceLabel::Measured});
    scene_.setSources({{run, {}, true}});
    EXPECT_FALSE(memory_.showsGpus());
    EXPECT_EQ(names(), (QStringList{"rank 0", "rank 1"}));
    run->addGpu({.number = 4, .total = 1'000'000});
    run->addGpuMemory(traces::GpuId{0}, 0, {.active = 5, .reserved = 6, .used = 7});
    scene_.dataArrived();
    EXPECT_TRUE(memory_.showsGpus());
    EXPECT_EQ(chooserOf(memory_)->currentText(), "GPU 4");
    EXPECT_EQ(value(2, 3), 7);
    run->addGpuMemory(traces::GpuId{0}, 4 * kMs, {.active = 5, .reserved = 6, .used = 9});
    scene_.dataArrived();
    EXPECT_EQ(value(2, 3), 7);
    EXPECT_EQ(value(2, 6), 9);
    EXPECT_FALSE(saidIn(memory_.plot()).join(" ").contains("total")) << "far above the curves it would press them flat";
    EXPECT_TRUE(saidIn(memory_.plot()).join(" ").contains("peak 9 B of 976.6 KiB on GPU 4")) << saidIn(memory_.plot()).join(" | ").toStdString();
}

} // namespace
} // namespace stagecraft::ui
