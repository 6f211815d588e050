// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/timeline_scene.h"

#include <QSignalSpy>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::Interval;
using traces::Rank;
using traces::Step;
using traces::TraceLabel;

constexpr traces::TimeNs kBoot = 987'654'321'000'000; // a monotonic clock long after start

TEST(StepTable, FindsTheStepsOfAllLanes)
{
    const auto trace = twoRanks({.unit = {kMs, 2 * kMs}, .between = kMs});
    const StepTable steps(*trace);
    ASSERT_EQ(steps.all().size(), 2U);
    EXPECT_EQ(steps.all()[0].span, (Interval{0, 9 * kMs}));
    EXPECT_EQ(steps.all()[1].span, (Interval{10 * kMs, 28 * kMs}));
    EXPECT_EQ(steps.all()[1].slices, 9U);
    EXPECT_EQ(steps.find(Step{1})->step, Step{1});
    EXPECT_EQ(steps.find(Step{2}), nullptr);
}

TEST(StepTable, HoldsTheLastStepOfAGrowingTraceForUnfinished)
{
    const auto trace = twoRanks({.unit = {kMs, kMs}});
    const StepTable steps(*trace, Growth::Growing);
    EXPECT_TRUE(steps.all()[0].finished);
    EXPECT_FALSE(steps.all()[1].finished);
}

TEST(TimelineScene, ShowsEveryTraceFromZero)
{
    TimelineScene scene;
    scene.setSources({{twoRanks({.label = TraceLabel::Measured, .start = kBoot})}});
    EXPECT_EQ(scene.extent(), (Interval{0, 9 * kMs}));
    EXPECT_EQ(scene.axis().limits(), (Interval{0, 9 * kMs}));
}

TEST(TimelineScene, BeginsEachStepOfBothTracesTogether)
{
    TimelineScene scene;
    // Simulated steps of 9 ms each; measured ones of 18 and 27 ms with a pause of 3 ms between.
    scene.setSources({{twoRanks({.unit = {kMs, kMs}})},
                      {twoRanks({.label = TraceLabel::Measured, .start = kBoot, .unit = {2 * kMs, 3 * kMs}, .between = 3 * kMs})}});
    EXPECT_EQ(scene.reference(), 1);
    ASSERT_EQ(scene.segments(0).size(), 2U);
    EXPECT_EQ(scene.segments(0)[0].shown(), (Interval{0, 9 * kMs}));
    EXPECT_EQ(scene.segments(0)[1].shown(), (Interval{21 * kMs, 30 * kMs}));
    EXPECT_EQ(scene.extent(), (Interval{0, 48 * kMs}));
}

TEST(TimelineScene, RepeatsASimulatedStepUnderEachMeasuredOne)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {twoRanks({.label = TraceLabel::Emulated, .unit = {kMs, kMs, kMs}})}});
    ASSERT_EQ(scene.segments(0).size(), 3U);
    EXPECT_EQ(scene.segments(0)[2].shown(), (Interval{18 * kMs, 27 * kMs}));
}

TEST(TimelineScene, CutsASimulatedStepThatTakesLongerThanTheMeasuredOne)
{
    TimelineScene scene;
    // 18 ms simulated against steps of 9 ms
    scene.setSources({{twoRanks({.unit = {2 * kMs}})}, {twoRanks({.label = TraceLabel::Measured, .unit = {kMs, kMs}})}});
    ASSERT_EQ(scene.segments(0).size(), 2U);
    EXPECT_EQ(scene.segments(0)[0].shown(), (Interval{0, 9 * kMs}));
    EXPECT_EQ(scene.segments(0)[1].shown(), (Interval{9 * kMs, 27 * kMs}));
}

TEST(TimelineScene, ShowsWhatARunHasNotReachedYet)
{
    TimelineScene scene;
    scene.setSources({{twoRanks({.unit = {kMs, kMs, kMs}})}, {twoRanks({.label = TraceLabel::Measured, .unit = {2 * kMs}}), {}, true}});
    ASSERT_EQ(scene.segments(0).size(), 3U);
    EXPECT_EQ(scene.segments(0)[2].shown(), (Interval{18 * kMs, 27 * kMs}));
}

TEST(TimelineScene, LetsTheSimulationSetTheTimeUntilARunHasBlocks)
{
    const auto empty = std::make_shared<traces::Trace>();
    empty->info.label = TraceLabel::Measured;
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {empty, {}, true}});
    EXPECT_EQ(scene.reference(), 0);
    EXPECT_FALSE(scene.empty());
    EXPECT_EQ(scene.extent(), (Interval{0, 9 * kMs}));
}

TEST(TimelineScene, GrowsWithItsTrace)
{
    const auto trace = twoRanks({.label = TraceLabel::Measured, .start = kBoot});
    TimelineScene scene;
    scene.setSources({{trace, {}, true}});
    QSignalSpy changed(&scene, &TimelineScene::dataChanged);
    trace->append(traces::LaneId{1}, {.begin = kBoot + 12 * kMs, .end = kBoot + 20 * kMs,
                                      .action = traces::forward(traces::Stage{1}, traces::MicroBatch{0}), .step = Step{1}, .text = {}});
    scene.dataArrived();
    EXPECT_EQ(changed.count(), 1);
    EXPECT_EQ(scene.newest(), 20 * kMs);
    EXPECT_EQ(scene.axis().limits().end, 20 * kMs);
    EXPECT_TRUE(scene.axis().showsAll());
}

TEST(TimelineScene, KeepsTheViewWhenAPlanChangesALittle)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    scene.axis().setRange({2 * kMs, 5 * kMs});
    scene.setSources({{twoRanks({.unit = {kMs + 100'000}})}});
    EXPECT_EQ(scene.axis().range().first(), 2 * kMs);
    scene.setSources({{twoRanks({.unit = {10 * kMs}})}});
    EXPECT_TRUE(scene.axis().showsAll());
}

TEST(TimelineScene, KnowsTheGapsOfAStep)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    const GapTable& gaps = scene.gaps(0, Step{0});
    ASSERT_EQ(gaps.of(Rank{0}).size(), 2U);
    EXPECT_EQ(gaps.of(Rank{0})[0].span, (Interval{2 * kMs, 4 * kMs}));
    EXPECT_EQ(gaps.of(Rank{0})[0].cause, traces::GapCause::WaitForStage);
    ASSERT_NE(gaps.at(Rank{1}, 8 * kMs), nullptr);
    EXPECT_EQ(gaps.at(Rank{1}, 8 * kMs)->cause, traces::GapCause::Draining);
    EXPECT_EQ(gaps.at(Rank{1}, 3 * kMs), nullptr);
    ASSERT_TRUE(scene.figures(0, Step{0}));
    EXPECT_EQ(scene.figures(0, Step{0})->makespan, 9 * kMs);
}

TEST(TimelineScene, DoesNotCallTheEdgeOfARunDraining)
{
    const auto trace = twoRanks({.label = TraceLabel::Measured});
    TimelineScene scene;
    scene.setSources({{trace, {}, true}});
    EXPECT_EQ(scene.gaps(0, Step{0}).at(Rank{1}, 8 * kMs), nullptr);
    scene.setGrowing(0, false);
    EXPECT_NE(scene.gaps(0, Step{0}).at(Rank{1}, 8 * kMs), nullptr);
}

TEST(TimelineScene, DropsItemsThatAreGone)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    const TimelineItem item{.kind = TimelineItem::Kind::Slice, .source = 0, .slice = {traces::LaneId{0}, 3}};
    EXPECT_EQ(scene.shownSpan(item), (Interval{7 * kMs, 9 * kMs}));
    scene.setSources({{std::make_shared<traces::Trace>()}});
    EXPECT_FALSE(scene.shownSpan(item));
}

TEST(TimelineScene, LeavesOutSourcesWithoutATrace)
{
    TimelineScene scene;
    scene.setSources({{nullptr}});
    EXPECT_EQ(scene.sourceCount(), 0);
    EXPECT_TRUE(scene.empty());
}

} // namespace
} // namespace stagecraft::ui
