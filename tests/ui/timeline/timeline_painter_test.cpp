// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "tests/ui/support/traces.h"
#include "ui/timeline/lane_picture.h"
#include "ui/timeline/legend_painter.h"
#include "ui/timeline/stuck_painter.h"
#include "ui/timeline/timeline_painter.h"

#include <QApplication>
#include <QImage>
#include <QPainter>

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace stagecraft::ui {
namespace {

using support::Exchanging;
using support::exchangingRanks;
using support::summingRanks;
using support::kMs;
using support::streamWithGap;
using support::twoRanks;
using traces::LaneId;
using traces::PaintClass;

// Paints 10 ms into a picture of 1000 pixels of lanes and looks at its pixels.
class Painting : public ::testing::TestWithParam<std::tuple<Surface, ThemeKind>> {
protected:
    Painting() : theme_(Theme::of(std::get<1>(GetParam()))), painter_(theme_, QApplication::font()) {}

    void paint(double ratio = 1)
    {
        layout_ = LaneLayout(scene_, {.fitHeight = 300});
        view_.area = QRectF(0, 0, painter_.headerWidth() + 1000, painter_.rulerHeight() + 340);
        view_.range = {0, start_ * kMs, 10.0 * kMs};
        view_.surface = std::get<0>(GetParam());
        view_.deviceRatio = ratio;
        image_ = QImage((view_.area.size() * ratio).toSize(), QImage::Format_RGB32);
        image_.setDevicePixelRatio(ratio);
        image_.fill(Qt::magenta);
        QPainter painter(&image_);
        painter_.paint(painter, scene_, layout_, view_);
        ratio_ = ratio;
    }
    QColor at(double ms, int source, LaneId lane, double place = 0.15)
    {
        const Row* row = layout_.rowOf(source, lane);
        const QRectF lanes = painter_.lanesRect(view_.area);
        return image_.pixelColor(static_cast<int>((lanes.left() + ms * 100) * ratio_),
                                 static_cast<int>((lanes.top() + row->y - view_.scroll + row->height * place) * ratio_));
    }
    QColor block(PaintClass paint) const { return theme_.block(paint, 0); }

    Theme theme_;
    TimelineScene scene_;
    TimelinePainter painter_;
    LaneLayout layout_;
    TimelineView view_;
    QImage image_;
    double ratio_ = 1;
    double start_ = 0; // ms at the left
};
INSTANTIATE_TEST_SUITE_P(Surfaces, Painting,
                         ::testing::Combine(::testing::Values(Surface::Pixels, Surface::Vector),
                                            ::testing::Values(ThemeKind::Light, ThemeKind::Dark)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param) == Surface::Pixels ? "Pixels" : "Vector") +
                                    (std::get<1>(info.param) == ThemeKind::Light ? "Light" : "Dark");
                         });

TEST_P(Painting, ColoursBlocksByKind)
{
    scene_.setSources({{twoRanks()}});
    paint();
    EXPECT_EQ(at(0.3, 0, LaneId{0}), block(PaintClass::Forward));
    EXPECT_EQ(at(1.3, 0, LaneId{0}), block(PaintClass::Forward));
    EXPECT_EQ(at(5, 0, LaneId{0}), block(PaintClass::Backward));
    EXPECT_EQ(at(3, 0, LaneId{1}), block(PaintClass::Backward));
    EXPECT_EQ(at(1.25, 0, LaneId{2}, 0.5), block(PaintClass::Transfer));
    EXPECT_EQ(at(5.3, 0, LaneId{2}, 0.5), theme_.subLane);
}

TEST_P(Painting, LooksTheSameWithAnyNumberOfThreads)
{
    engine::ScheduleRequest request;
    request.ranks = 12;
    request.microbatches = 16;
    engine::CostTable costs;
    engine::StageCosts stage;
    stage.forward = kMs / 5;
    stage.backward = kMs / 2;
    costs.stages.assign(12, stage);
    costs.transfer = kMs / 20;
    auto trace = engine::simulate(engine::generate(request).value(), costs);
    ASSERT_TRUE(trace.ok());
    scene_.setSources({{std::make_shared<traces::Trace>(std::move(trace).value())}});
    for (const double ratio : {1.0, 1.5}) {
        view_.scroll = 17.3;
        painter_.setThreads(1);
        paint(ratio);
        const QImage alone = image_;
        for (const int threads : {2, 3, 7}) {
            painter_.setThreads(threads);
            paint(ratio);
            EXPECT_EQ(image_, alone) << threads << " threads, ratio " << ratio;
        }
    }
}

TEST_P(Painting, HatchesBubbles)
{
    scene_.setSources({{twoRanks()}});
    paint();
    bool stroke = false;
    bool ground = false;
    for (double ms = 2.1; ms < 2.4; ms += 0.01) {
        const QColor colour = at(ms, 0, LaneId{0});
        stroke |= colour == theme_.hatch;
        ground |= colour == theme_.lane;
    }
    EXPECT_TRUE(stroke);
    EXPECT_TRUE(ground);
    // After the step there is nothing to hatch.
    for (double ms = 9.2; ms < 9.7; ms += 0.01) EXPECT_NE(at(ms, 0, LaneId{0}), theme_.hatch);
}

TEST_P(Painting, HatchesWhatIsKnownOfAStreamsGaps)
{
    const auto [trace, stream, gaps] = streamWithGap("launch on its way");
    scene_.setSources({{trace}});
    paint();
    EXPECT_EQ(at(0.9, 0, stream), block(PaintClass::Other));
    const auto stroked = [&](double from, double to) {
        bool stroke = false;
        for (double ms = from; ms < to; ms += 0.01) stroke |= at(ms, 0, stream, 0.05) == theme_.hatch;
        return stroke;
    };
    EXPECT_TRUE(stroked(1.05, 1.3));
    EXPECT_FALSE(stroked(3.2, 3.9)) << "nothing is known";
}

TEST_P(Painting, HatchesAKernelOfNcclWhileItWaits)
{
    for (const Exchanging& made : {exchangingRanks(), summingRanks()}) {
        scene_.setSources({{made.trace}});
        paint();
        const auto strokes = [&](double from, double to) {
            int count = 0;
            for (double ms = from; ms < to; ms += 0.01) count += at(ms, 0, made.kernels[0], 0.1) != block(PaintClass::Other) ? 1 : 0;
            return count;
        };
        EXPECT_GT(strokes(0.2, 0.6), 3);
        EXPECT_EQ(strokes(2.2, 2.6), 0) << "it moves";
        if (made.trace->lane(made.kernels[0]).size() > 1) {
            EXPECT_EQ(strokes(7.2, 7.6), 0) << "nothing is known";
        }
    }
}

TEST_P(Painting, LeavesAGapBetweenTouchingBlocks)
{
    scene_.setSources({{twoRanks()}});
    paint();
    EXPECT_EQ(at(0.98, 0, LaneId{0}), block(PaintClass::Forward));
    EXPECT_EQ(at(0.995, 0, LaneId{0}, 0.3), theme_.lane);
    EXPECT_EQ(at(1.02, 0, LaneId{0}, 0.3), block(PaintClass::Forward));
}

TEST_P(Painting, PaintsNoPixelTwiceOrNever)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured})}});
    paint();
    for (int y = 0; y < image_.height(); y += 3)
        for (int x = 0; x < image_.width(); x += 3) ASSERT_NE(image_.pixelColor(x, y), QColor(Qt::magenta)) << x << ", " << y;
}

TEST_P(Painting, MarksThePhasesOfTheStep)
{
    scene_.setSources({{twoRanks()}});
    paint();
    const QRectF lanes = painter_.lanesRect(view_.area);
    // Full from 1 ms (rank 1 begins) to 7 ms (rank 1 is done).
    const int y = static_cast<int>(painter_.rulerHeight() * 0.40);
    const auto colour = [&](double ms) { return image_.pixelColor(static_cast<int>(lanes.left() + ms * 100), y); };
    EXPECT_EQ(colour(0.2), theme_.filling);
    EXPECT_EQ(colour(2), theme_.steady);
    EXPECT_EQ(colour(6.8), theme_.steady);
    EXPECT_EQ(colour(7.3), theme_.draining);
}

TEST_P(Painting, OutlinesTheSelectedBlockAndItsHandOffs)
{
    scene_.setSources({{twoRanks()}});
    paint();
    const QImage plain = image_;
    view_.selection = {.kind = TimelineItem::Kind::Slice, .source = 0, .slice = {LaneId{0}, 0}};
    paint();
    int accent = 0;
    int changedElsewhere = 0;
    const QRectF lanes = painter_.lanesRect(view_.area);
    for (int y = 0; y < image_.height(); ++y)
        for (int x = 0; x < image_.width(); ++x) {
            if (image_.pixel(x, y) == plain.pixel(x, y)) continue;
            if (image_.pixelColor(x, y) == theme_.accent) ++accent;
            if (x > lanes.left() + 110) ++changedElsewhere; // F0 ends at 100; its edge leads to rank 1 at 100
            EXPECT_GE(y, static_cast<int>(lanes.top()) - 1);
        }
    EXPECT_GT(accent, 100);
    EXPECT_LT(changedElsewhere, 200);
    const Row* to = layout_.rowOf(0, LaneId{1});
    // It begins at once: a straight arrow, its head over the upper edge of the consumer's lane and nothing half way down.
    const auto arrowAt = [&](double y) {
        bool found = false;
        for (int dx = -8; dx < 8; ++dx)
            found |= image_.pixelColor(static_cast<int>(lanes.left()) + 100 + dx, static_cast<int>(lanes.top() + to->y + y)) == theme_.arrow;
        return found;
    };
    EXPECT_TRUE(arrowAt(3));
    EXPECT_FALSE(arrowAt(to->height / 2));
}

TEST_P(Painting, ShadesPauses)
{
    const auto trace = twoRanks({.label = traces::TraceLabel::Measured});
    scene_.setSources({{trace}});
    paint();
    const QColor before = at(2.5, 0, LaneId{1});
    trace->addPause({2 * kMs, 3 * kMs});
    scene_.setSources({{trace}});
    paint();
    EXPECT_NE(at(2.5, 0, LaneId{1}), before);
    EXPECT_EQ(at(5.5, 0, LaneId{1}), block(PaintClass::Backward));
}

TEST_P(Painting, DrawsTheSimulationAsOutlines)
{
    scene_.setSources({{twoRanks({.unit = {kMs + kMs / 10}})}, {twoRanks({.label = traces::TraceLabel::Measured})}});
    scene_.setArrangement(Arrangement::Overlaid);
    paint();
    // The simulated B0 of rank 0 lies at 4.4 .. 6.6, the measured one at 4 .. 6.
    EXPECT_EQ(at(4.2, 1, LaneId{0}, 0.3), block(PaintClass::Backward));
    EXPECT_EQ(at(5.5, 1, LaneId{0}, 0.3), block(PaintClass::Backward));
    int dark = 0;
    for (double ms = 4.38; ms < 4.45; ms += 0.01) dark += at(ms, 1, LaneId{0}, 0.3) != block(PaintClass::Backward);
    EXPECT_GE(dark, 1);
    EXPECT_LE(dark, 4);
}

// The path of twoRanks(): 0F0, 1F0, 1B0, 1F1, 1B1, 0B1; at the foot of its blocks and of no other.
TEST_P(Painting, DrawsTheCriticalPath)
{
    scene_.setSources({{twoRanks()}});
    const auto foot = [&](double ms, LaneId lane) { return at(ms, 0, lane, 1 - 3 / layout_.rowOf(0, lane)->height); };
    paint();
    EXPECT_NE(foot(0.5, LaneId{0}), theme_.path);
    view_.criticalPath = true;
    paint();
    EXPECT_EQ(foot(0.5, LaneId{0}), theme_.path);
    for (const double ms : {1.5, 3.0, 4.5, 6.0}) EXPECT_EQ(foot(ms, LaneId{1}), theme_.path) << ms;
    EXPECT_EQ(foot(8, LaneId{0}), theme_.path);
    EXPECT_NE(foot(1.5, LaneId{0}), theme_.path) << "0F1";
    EXPECT_NE(foot(5, LaneId{0}), theme_.path) << "0B0";
}

TEST_P(Painting, MarksWhoWaitsForWhomForEver)
{
    TraceSource source{twoRanks()};
    source.stuck = {{traces::Rank{0}, "0F2 waits for 1F2", traces::Rank{1}}, {traces::Rank{1}, "1F2 waits for 0F2", traces::Rank{0}}};
    scene_.setSources({source});
    EXPECT_GT(scene_.extent().end, 9 * kMs) << "room for it behind the last block";
    paint();
    const auto inkFrom = [&](double ms, LaneId lane) {
        int found = 0;
        for (double at = ms; at < ms + 0.9; at += 0.01) found += this->at(at, 0, lane, 0.5) == theme_.error;
        return found;
    };
    EXPECT_GT(inkFrom(9.02, LaneId{0}), 0);
    EXPECT_GT(inkFrom(7.02, LaneId{1}), 0);
    scene_.setSources({{twoRanks()}});
    paint();
    EXPECT_EQ(inkFrom(7.02, LaneId{1}), 0);
}

TEST_P(Painting, ShowsWhoWaitsForEverWholeWhereThereIsRoom)
{
    TraceSource source{twoRanks()};
    const QString text = QStringLiteral("1SEND_B0 waits for 0RECV_B0, which waits for itself");
    source.stuck = {{traces::Rank{0}, text, traces::Rank{1}}, {traces::Rank{1}, text, traces::Rank{0}}};
    scene_.setSources({source});
    paint();
    const QRectF lanes = painter_.lanesRect(view_.area);
    const auto boxes = stuckBoxes(scene_, layout_, {lanes, 0, TimeMapping(view_.range, lanes.left(), lanes.width())}, QApplication::font(), 0);
    ASSERT_EQ(boxes.size(), 2U);
    for (const auto& [rank, box] : boxes) {
        EXPECT_GT(box.width(), QFontMetricsF(QApplication::font()).horizontalAdvance(text));
        EXPECT_GE(box.left(), lanes.left());
        EXPECT_LT(box.right(), lanes.right());
    }
}

// Rank 1 stands in a receipt until its first forward: it idles all the same.
TEST_P(Painting, ShowsTheReceiptInWhichARankIdles)
{
    using namespace traces;
    auto trace = std::make_shared<Trace>();
    const LaneId zero = trace->addLane({Rank{0}, LaneKind::Compute, 0, "rank 0"});
    const LaneId one = trace->addLane({Rank{1}, LaneKind::Compute, 0, "rank 1"});
    trace->append(zero, {0, 9 * kMs, makeAction(ActionKind::Forward, Stage{0}, MicroBatch{0}), Step{0}, {}});
    trace->append(one, {0, kMs, makeAction(ActionKind::Forward, Stage{1}, MicroBatch{0}), Step{0}, {}});
    trace->append(one, {2 * kMs, 5 * kMs, makeAction(ActionKind::RecvForward, Stage{1}, MicroBatch{1}), Step{0}, {}});
    trace->append(one, {5 * kMs, 6 * kMs, makeAction(ActionKind::Forward, Stage{1}, MicroBatch{1}), Step{0}, {}});
    trace->addStep({.step = Step{0}, .span = {0, 9 * kMs}, .loss = {}});
    scene_.setSources({{trace}});
    paint();
    bool receipt = false;
    bool stroke = false;
    for (double ms = 2.2; ms < 3; ms += 0.01) {
        receipt |= at(ms, 0, one) == block(PaintClass::Transfer);
        stroke |= at(ms, 0, one) == theme_.hatch;
    }
    EXPECT_TRUE(receipt);
    EXPECT_TRUE(stroke);
}

TEST(Bubble, HasItsTextWhereNoBlockIs)
{
    const Bubble bubble{.left = 100, .right = 300, .gap = nullptr};
    const auto free = [&](const std::vector<SweepBlock>& blocks) {
        const Stretch part = freePart(bubble, blocks);
        return std::pair(part.left, part.right);
    };
    EXPECT_EQ(free({{.left = 0, .right = 100}, {.left = 300, .right = 400}}), std::pair(100.0, 300.0));
    EXPECT_EQ(free({{.left = 100, .right = 180}, {.left = 290, .right = 300}}), std::pair(180.0, 290.0));
    EXPECT_EQ(free({{.left = 150, .right = 160}, {.left = 200, .right = 400}}), std::pair(100.0, 150.0));
    const auto [left, right] = free({{.left = 50, .right = 350}});
    EXPECT_EQ(right - left, 0);
}

// A forward, a recomputation and its backward on rank 0, a copy and a collective under them, a pair's second lane on rank 1.
std::shared_ptr<traces::Trace> withCompany()
{
    using namespace traces;
    auto trace = std::make_shared<Trace>();
    const auto lane = [&](int rank, LaneKind kind, int depth, const char* name) {
        return trace->addLane({Rank{rank}, kind, depth, name});
    };
    const auto add = [&](LaneId to, int from, int until, ActionKind kind) {
        trace->append(to, {from * kMs, until * kMs, makeAction(kind, Stage{0}, MicroBatch{0}), Step{0}, {}});
    };
    const LaneId work = lane(0, LaneKind::Compute, 0, "rank 0");
    const LaneId other = lane(1, LaneKind::Compute, 0, "rank 1");
    const LaneId second = lane(1, LaneKind::Compute, 1, "rank 1 (2)");
    const LaneId copies = lane(0, LaneKind::Copy, 0, "rank 0 offloads");
    const LaneId sums = lane(0, LaneKind::Collective, 0, "rank 0 collectives");
    add(work, 0, 2, ActionKind::Forward);
    add(work, 2, 4, ActionKind::Recompute);
    add(work, 4, 9, ActionKind::Backward);
    add(other, 0, 9, ActionKind::Forward);
    add(second, 1, 3, ActionKind::Backward);
    add(copies, 2, 4, ActionKind::Offload);
    add(sums, 4, 9, ActionKind::ReduceGrad);
    trace->addStep({.step = Step{0}, .span = {0, 9 * kMs}, .loss = {}});
    return trace;
}

TEST_P(Painting, HatchesRecomputationsAndNoForwards)
{
    scene_.setSources({{withCompany()}});
    paint();
    const QColor recompute = block(PaintClass::Recompute);
    int plain = 0;
    int stroked = 0;
    for (double ms = 2.1; ms < 2.9; ms += 0.01) {
        const QColor pixel = at(ms, 0, LaneId{0}, 0.15);
        plain += pixel == recompute;
        stroked += pixel != recompute;
        EXPECT_EQ(at(ms - 2, 0, LaneId{0}, 0.15), block(PaintClass::Forward));
    }
    EXPECT_GT(plain, 20);
    EXPECT_GT(stroked, 8); // where lines are not smoothed a stroke is a pixel of seven
    EXPECT_EQ(at(2.2, 0, LaneId{3}, 0.2), block(PaintClass::Copy));
    EXPECT_EQ(at(4.5, 0, LaneId{4}, 0.2), block(PaintClass::Collective));
}

TEST_P(Painting, KeepsTheStrokesOnABlockThatMoves)
{
    scene_.setSources({{withCompany()}});
    const auto strokes = [&](double from) {
        paint();
        std::vector<QRgb> seen;
        for (double ms = from; ms < from + 0.5; ms += 0.01) seen.push_back(at(ms, 0, LaneId{0}, 0.15).rgb());
        return seen;
    };
    const auto before = strokes(2.205);
    start_ = 0.03; // 3 pixels to the left
    EXPECT_EQ(strokes(2.175), before);
}

TEST_P(Painting, NamesTheLanesBelowARanksFirst)
{
    scene_.setSources({{withCompany()}});
    const auto inkBeside = [&](LaneId lane) {
        const Row* row = layout_.rowOf(0, lane);
        const double top = painter_.lanesRect(view_.area).top() + row->y;
        int found = 0;
        for (int y = static_cast<int>(top) + 1; y < top + row->height - 1; ++y)
            for (int x = 20; x < painter_.headerWidth() - 4; ++x) found += image_.pixelColor(x, y) != theme_.base;
        return found;
    };
    paint();
    for (const LaneId lane : {LaneId{2}, LaneId{3}, LaneId{4}}) EXPECT_GT(inkBeside(lane), 20) << lane.value;
    scene_.setSources({{twoRanks()}});
    paint();
    EXPECT_EQ(inkBeside(LaneId{2}), 0) << "a lane of transfers is too thin";
}

TEST_P(Painting, TellsInTheLegendWhatTheTraceHas)
{
    const auto drawn = [&] {
        QImage image(1400, 30, QImage::Format_RGB32);
        image.fill(theme_.base);
        QPainter painter(&image);
        paintLegend(painter, scene_, QRectF(4, 0, 1390, 30), theme_, QApplication::font());
        painter.end();
        std::set<QRgb> colours;
        for (int x = 0; x < image.width(); ++x)
            for (int y = 8; y < 22; ++y) colours.insert(image.pixel(x, y));
        return colours;
    };
    const std::array<PaintClass, 3> company{PaintClass::Recompute, PaintClass::Copy, PaintClass::Collective};
    scene_.setSources({{withCompany()}});
    const std::set<QRgb> with = drawn();
    for (const PaintClass paint : company) EXPECT_TRUE(with.contains(block(paint).rgb())) << paintClassName(paint);
    EXPECT_TRUE(with.contains(block(PaintClass::Forward).rgb()));
    EXPECT_FALSE(with.contains(block(PaintClass::Transfer).rgb()));
    EXPECT_FALSE(with.contains(block(PaintClass::Optimizer).rgb()));
    scene_.setSources({{twoRanks()}});
    const std::set<QRgb> without = drawn();
    for (const PaintClass paint : company) EXPECT_FALSE(without.contains(block(paint).rgb())) << paintClassName(paint);
    EXPECT_TRUE(without.contains(block(PaintClass::Transfer).rgb()));
}

TEST_P(Painting, BreaksTheLegendWhereItIsNarrow)
{
    scene_.setSources({{withCompany()}});
    const QFont font = QApplication::font();
    const double one = legendHeight(scene_, 1400, font);
    const double several = legendHeight(scene_, 260, font);
    EXPECT_GE(several, 2 * one);
    QImage image(270, static_cast<int>(several), QImage::Format_RGB32);
    image.fill(theme_.base);
    QPainter painter(&image);
    paintLegend(painter, scene_, QRectF(4, 0, 260, several), theme_, font);
    painter.end();
    std::set<QRgb> colours;
    for (int x = 0; x < image.width(); ++x)
        for (int y = 0; y < image.height(); ++y) colours.insert(image.pixel(x, y));
    for (const PaintClass paint : {PaintClass::Forward, PaintClass::Recompute, PaintClass::Backward, PaintClass::Copy, PaintClass::Collective})
        EXPECT_TRUE(colours.contains(block(paint).rgb())) << paintClassName(paint);
    EXPECT_TRUE(colours.contains(theme_.lane.rgb())) << "idle comes last";
}

TEST_P(Painting, FollowsTheScrollPosition)
{
    scene_.setSources({{twoRanks()}});
    view_.scroll = 40;
    paint();
    EXPECT_EQ(at(3, 0, LaneId{1}), block(PaintClass::Backward));
}

TEST_P(Painting, IsSharpOnDenseScreens)
{
    scene_.setSources({{twoRanks()}});
    paint(2);
    EXPECT_EQ(at(0.3, 0, LaneId{0}), block(PaintClass::Forward));
    EXPECT_EQ(at(5, 0, LaneId{0}), block(PaintClass::Backward));
    // The edge at 4 ms takes one device pixel at most.
    const QRectF lanes = painter_.lanesRect(view_.area);
    const Row* row = layout_.rowOf(0, LaneId{0});
    const int y = static_cast<int>((lanes.top() + row->y + row->height * 0.3) * 2);
    const int edge = static_cast<int>((lanes.left() + 400) * 2);
    EXPECT_EQ(image_.pixelColor(edge + 1, y), block(PaintClass::Backward));
    EXPECT_NE(image_.pixelColor(edge - 1, y), block(PaintClass::Backward));
}

TEST_P(Painting, StaysCalmWithoutSources)
{
    paint();
    EXPECT_EQ(image_.pixelColor(300, 100), theme_.base);
}

} // namespace
} // namespace stagecraft::ui
