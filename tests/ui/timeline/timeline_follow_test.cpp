// SPDX-License-Identifier: GPL-3.0-or-later
//
// Following a run.
#include "tests/ui/timeline/timeline_widget_fixture.h"

#include <QSignalSpy>
#include <QToolButton>

#include <algorithm>
#include <array>
#include <random>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::LaneId;
using traces::TimeNs;

TEST_F(TimelineWidgetTest, FollowsARun)
{
    const auto trace = twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs}});
    scene_.setSources({{trace, {}, true}});
    const auto grow = [&](int step) {
        const TimeNs begin = step * 10 * kMs;
        trace->append(LaneId{0}, {.begin = begin, .end = begin + 9 * kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0}),
                                  .step = traces::Step{step}, .text = {}});
        scene_.dataArrived();
    };
    QSignalSpy following(&widget_, &TimelineWidget::followingChanged);
    key(Qt::Key_L);
    EXPECT_TRUE(widget_.following());
    for (int step = 1; step < 8; ++step) {
        grow(step);
        EXPECT_GE(range().last(), scene_.newest());
    }
    EXPECT_FALSE(scene_.axis().showsAll()); // the window moves along
    EXPECT_NEAR(range().length, 2.2 * 9e6, 1e6);

    wheel(at(75, LaneId{0}), {0, 120}); // zooming goes on following
    EXPECT_TRUE(widget_.following());
    for (int i = 0; i < 6; ++i) key(Qt::Key_A); // moving away does not
    EXPECT_FALSE(widget_.following());
    const TimeRange held = range();
    grow(8);
    EXPECT_EQ(range(), held);
    EXPECT_EQ(following.count(), 2);
}

// Whatever the lengths, the growth itself never ends the following, and the newest moment stays in sight.
TEST_F(TimelineWidgetTest, GoesOnFollowingWhateverTheLengths)
{
    constexpr std::array<TimeNs, 8> kLengths{1, 3, 7, 97, 7'919, 104'729, 15'485'863, 982'451'653};
    auto* follow = widget_.findChild<QToolButton*>();
    for (unsigned seed = 1; seed <= 60; ++seed) {
        std::mt19937 random(seed);
        const auto oneOf = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
        const auto trace = std::make_shared<traces::Trace>();
        trace->info.label = traces::TraceLabel::Measured;
        std::array<LaneId, 2> lanes{};
        for (int rank = 0; rank < 2; ++rank)
            lanes[static_cast<std::size_t>(rank)] =
                trace->addLane({.rank = traces::Rank{rank}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
        const auto simulated = twoRanks({.unit = {kLengths[oneOf(kLengths.size())]}});
        scene_.setSources({{simulated}, {trace, {}, true}}, seed % 2 == 0 ? Arrangement::Overlaid : Arrangement::Stacked);
        follow->click();
        ASSERT_TRUE(widget_.following());
        TimeNs now = static_cast<TimeNs>(random() % 1'000'003);
        const std::size_t unit = oneOf(kLengths.size());
        for (int step = 0; step < 12; ++step) {
            for (int block = 0; block < 4; ++block) {
                const TimeNs length = kLengths[std::min(unit, oneOf(kLengths.size()))];
                trace->append(lanes[oneOf(2)], {.begin = now, .end = now + length, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{block}),
                                                .step = traces::Step{step}, .text = {}});
                now += length + static_cast<TimeNs>(random() % 3);
                if (random() % 3 == 0) continue;
                scene_.dataArrived();
                ASSERT_TRUE(widget_.following()) << "seed " << seed << ", step " << step;
                EXPECT_LE(range().first(), scene_.newest()) << "seed " << seed << ", step " << step;
                EXPECT_GE(range().last(), scene_.newest()) << "seed " << seed << ", step " << step;
            }
            if (random() % 4 == 0) scene_.axis().zoom(step % 2 == 0 ? 0.37 : 1.9, scene_.newest() - 1); // as the wheel does
            if (random() % 4 == 0) scene_.setSources({{twoRanks({.unit = {kLengths[oneOf(kLengths.size())]}})}, {trace, {}, true}});
            ASSERT_TRUE(widget_.following()) << "seed " << seed << ", step " << step;
        }
        widget_.resize(700 + static_cast<int>(seed) * 7, 400);
        ASSERT_TRUE(widget_.following()) << "seed " << seed;
        scene_.axis().pan(-3); // the user does
        ASSERT_FALSE(widget_.following()) << "seed " << seed;
    }
}

TEST_F(TimelineWidgetTest, StopsFollowingWhenTheUserGoesElsewhere)
{
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs, kMs, kMs}}), {}, true}});
    const auto endedBy = [&](const char* what, const auto& move) {
        widget_.setFollowing(true);
        move();
        EXPECT_FALSE(widget_.following()) << what;
    };
    const auto keptBy = [&](const char* what, const auto& move) {
        widget_.setFollowing(true);
        move();
        EXPECT_TRUE(widget_.following()) << what;
    };
    endedBy("fit all", [&] { widget_.fitAll(); });
    scene_.axis().zoom(0.5, 20 * kMs);
    endedBy("a drag", [&] { drag(at(22, LaneId{0}), at(22, LaneId{0}) + QPointF(30, 0)); });
    endedBy("a box", [&] { drag(at(21, LaneId{0}), at(24, LaneId{0}), Qt::RightButton); });
    endedBy("a key", [&] { key(Qt::Key_D); });
    endedBy("back", [&] { key(Qt::Key_Backspace); });
    endedBy("home", [&] { key(Qt::Key_Home); });
    keptBy("the wheel", [&] { wheel(at(22, LaneId{0}), {0, 120}); });
    keptBy("a zoom key", [&] { key(Qt::Key_S); });
    keptBy("data", [&] { scene_.dataArrived(); });
}

TEST_F(TimelineWidgetTest, StopsFollowingWhenTheRunEnds)
{
    scene_.setSources({{twoRanks({.label = traces::TraceLabel::Measured}), {}, true}});
    key(Qt::Key_L);
    EXPECT_TRUE(widget_.following());
    scene_.setGrowing(0, false);
    EXPECT_FALSE(widget_.following());
}

} // namespace
} // namespace stagecraft::ui
