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

TEST(StepTable, HoldsAStepForFinishedWhenTheTraceSaysSo)
{
    const auto trace = twoRanks({.label = TraceLabel::Measured, .unit = {kMs, kMs}});
    trace->append(traces::LaneId{0}, {.begin = 18 * kMs, .end = 19 * kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0}), .step = Step{2}, .text = {}});
    for (const Growth growth : {Growth::Growing, Growth::Closed}) { // a run that goes on, and one that was stopped in step 2
        const StepTable steps(*trace, growth);
        EXPECT_TRUE(steps.all()[1].finished); // without waiting for the next step to begin
        EXPECT_FALSE(steps.all()[2].finished);
    }
}

TEST(StepTable, TakesNoStepOfARunForFinishedThatWasStoppedInItsFirst)
{
    traces::Trace trace;
    trace.info.label = TraceLabel::Emulated;
    const auto lane = trace.addLane({.rank = Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    trace.append(lane, {.begin = 0, .end = kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0}), .step = {}, .text = {}});
    EXPECT_FALSE(StepTable(trace).all()[0].finished);
    trace.info.label = TraceLabel::Imported; // other tools do not tell
    EXPECT_TRUE(StepTable(trace).all()[0].finished);
    EXPECT_FALSE(StepTable(trace, Growth::Growing).all()[0].finished);
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
    const auto finished = twoRanks({.label = TraceLabel::Measured});
    const auto trace = std::make_shared<traces::Trace>(); // the same without a word that the step is over
    trace->info = finished->info;
    for (const traces::Lane& lane : finished->lanes()) {
        const auto id = trace->addLane(lane.info());
        for (std::size_t i = 0; i < lane.size(); ++i) trace->append(id, lane.slice(i));
    }
    TimelineScene scene;
    scene.setSources({{trace, {}, true}});
    EXPECT_EQ(scene.gaps(0, Step{0}).at(Rank{1}, 8 * kMs), nullptr);
    scene.setGrowing(0, false); // stopped
    EXPECT_EQ(scene.gaps(0, Step{0}).at(Rank{1}, 8 * kMs), nullptr);
    trace->addStep({.step = Step{0}, .span = {0, 9 * kMs}, .loss = {}});
    scene.dataArrived();
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
