// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bubbles and figures of steps, short ones at once and long ones beside the window.
#include "tests/ui/timeline/timeline_widget_fixture.h"

#include "ui/timeline/ruler_painter.h"
#include "ui/timeline/step_analyses.h"

#include <QSignalSpy>

#include <random>

namespace stagecraft::ui {
namespace {

using support::kMs;
using traces::Gap;
using traces::GapCause;
using traces::LaneId;
using traces::Rank;
using traces::Stage;
using traces::Step;
using traces::TimeNs;

constexpr std::size_t kLong = StepAnalyses::kDirectSlices + 1000;

// Two ranks whose blocks of 1 us alternate, so that each idles every other microsecond; every 1000th pause is 5 us longer.
void addBlocks(traces::Trace& trace, std::size_t blocks, Step step)
{
    TimeNs t = trace.extent().end;
    for (std::size_t i = 0; i < blocks; ++i) {
        if (i % 1000 == 999) t += 5000;
        trace.append(LaneId{i % 2}, {.begin = t,
                                     .end = t + 1000,
                                     .action = traces::forward(Stage{i % 2}, traces::MicroBatch{i / 2}),
                                     .step = step,
                                     .text = {}});
        t += 1000;
    }
}

std::shared_ptr<traces::Trace> longStep(std::size_t blocks = kLong, traces::TraceLabel label = traces::TraceLabel::Measured)
{
    auto trace = std::make_shared<traces::Trace>();
    trace->info.label = label;
    for (int r = 0; r < 2; ++r) trace->addLane({.rank = Rank{r}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    addBlocks(*trace, blocks, Step{0});
    return trace;
}

bool waitFor(const TimelineScene& scene)
{
    return QTest::qWaitFor([&] { return !scene.calculating(); });
}

TEST(StepAnalyses, WorksOutALongStepBesideTheWindow)
{
    const auto trace = longStep();
    trace->addStep({.step = Step{0}, .span = trace->extent(), .loss = {}});
    TimelineScene scene;
    scene.setSources({{trace}});
    QSignalSpy analysed(&scene, &TimelineScene::analysed);
    EXPECT_TRUE(scene.gaps(0, Step{0}).all().empty());
    EXPECT_FALSE(scene.figures(0, Step{0}));
    EXPECT_TRUE(scene.calculating(0, Step{0}));
    ASSERT_TRUE(waitFor(scene));
    EXPECT_EQ(analysed.count(), 1);
    EXPECT_FALSE(scene.calculating(0, Step{0}));
    const std::vector<Gap> expected = traces::gapsOf(*trace, Step{0});
    EXPECT_EQ(scene.gaps(0, Step{0}).all().size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), scene.gaps(0, Step{0}).all().begin()));
    ASSERT_TRUE(scene.figures(0, Step{0}));
    EXPECT_EQ(scene.figures(0, Step{0})->bubbleMakespan, traces::stepFigures(*trace, Step{0}).value().bubbleMakespan);
    EXPECT_FALSE(scene.calculating());
}

TEST(StepAnalyses, KeepsWhatItKnowsOfASourceThatStays)
{
    const auto trace = longStep();
    TimelineScene scene;
    scene.setSources({{trace}});
    EXPECT_FALSE(scene.figures(0, Step{0}));
    ASSERT_TRUE(waitFor(scene));
    scene.setSources({{support::twoRanks()}, {trace}}); // an edit simulates the plan anew
    EXPECT_TRUE(scene.figures(1, Step{0}));
    EXPECT_TRUE(scene.figures(0, Step{0})); // a short one, at once
    EXPECT_FALSE(scene.calculating());
}

TEST(StepAnalyses, DropsWhatIsOfASourceThatIsGone)
{
    TimelineScene scene;
    QSignalSpy analysed(&scene, &TimelineScene::analysed);
    scene.setSources({{longStep()}});
    EXPECT_FALSE(scene.figures(0, Step{0}));
    EXPECT_TRUE(scene.calculating());
    scene.setSources({{support::twoRanks()}});
    EXPECT_FALSE(scene.calculating());
    scene.setSources({{longStep(kLong + 2)}});
    EXPECT_FALSE(scene.figures(0, Step{0}));
    ASSERT_TRUE(waitFor(scene));
    EXPECT_EQ(analysed.count(), 1); // the first one's result came to nobody
    EXPECT_EQ(scene.figures(0, Step{0})->span.length(), scene.trace(0).extent().length());
}

TEST(StepAnalyses, TakesALongStepAgainWhenItIsFinished)
{
    const auto trace = longStep();
    TimelineScene scene;
    scene.setSources({{trace, {}, true}});
    const auto draining = [&] {
        const auto gaps = scene.gaps(0, Step{0}).all();
        return std::count_if(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.cause == GapCause::Draining; });
    };
    EXPECT_EQ(draining(), 0);
    ASSERT_TRUE(waitFor(scene));
    const std::size_t known = scene.gaps(0, Step{0}).all().size();
    EXPECT_GT(known, kLong / 2);
    EXPECT_EQ(draining(), 0); // the idle end is merely the newest moment

    addBlocks(*trace, 100, Step{0}); // not worth another look
    scene.dataArrived();
    EXPECT_EQ(scene.gaps(0, Step{0}).all().size(), known);
    EXPECT_FALSE(scene.calculating());

    addBlocks(*trace, kLong / 4, Step{0});
    scene.dataArrived();
    EXPECT_EQ(scene.gaps(0, Step{0}).all().size(), known); // those from before are shown meanwhile
    EXPECT_TRUE(scene.calculating(0, Step{0}));
    addBlocks(*trace, 100, Step{0}); // while a copy is looked at
    ASSERT_TRUE(waitFor(scene));
    EXPECT_GT(scene.gaps(0, Step{0}).all().size(), known);

    trace->addStep({.step = Step{0}, .span = trace->extent(), .loss = {}});
    scene.dataArrived();
    EXPECT_EQ(draining(), 0);
    ASSERT_TRUE(waitFor(scene));
    EXPECT_EQ(draining(), 1);
}

TEST(StepAnalyses, TakesOneStepOfManyAfterTheOther)
{
    const auto trace = longStep();
    addBlocks(*trace, 500, Step{1});
    addBlocks(*trace, 500, Step{2});
    TimelineScene scene;
    scene.setSources({{trace}});
    for (const int step : {0, 1, 2}) EXPECT_FALSE(scene.figures(0, Step{step}));
    ASSERT_TRUE(waitFor(scene));
    for (const int step : {0, 1, 2}) ASSERT_TRUE(scene.figures(0, Step{step})) << step;
    EXPECT_EQ(scene.figures(0, Step{2})->span.end, trace->extent().end);
}

TEST(StepAnalyses, WaitsForAPictureThatIsDrawnOnce)
{
    TimelineScene scene;
    scene.analyseAtOnce();
    scene.setSources({{longStep()}});
    EXPECT_TRUE(scene.figures(0, Step{0}));
    EXPECT_FALSE(scene.gaps(0, Step{0}).all().empty());
}

TEST(GapTable, FindsTheWideGapsThatAWalkFinds)
{
    std::mt19937 random(1);
    std::vector<Gap> gaps;
    for (int rank = 0; rank < 3; ++rank) {
        TimeNs t = 0;
        for (int i = 0; i < 5000; ++i) {
            t += 1 + random() % 50;
            const TimeNs end = t + 1 + random() % (i % 700 == 0 ? 1000 : 20);
            gaps.push_back({.rank = Rank{rank}, .span = {t, end}, .cause = GapCause::Unexplained});
            t = end;
        }
    }
    const GapTable table(gaps);
    for (int round = 0; round < 300; ++round) {
        const Rank rank{random() % 4}; // the last has none
        const TimeNs begin = random() % 200'000;
        const traces::Interval within{begin, begin + static_cast<TimeNs>(random() % 100'000)};
        const TimeNs least = random() % 3 == 0 ? 15 : 100 + static_cast<TimeNs>(random() % 800);
        std::vector<Gap> expected;
        for (const Gap& gap : gaps)
            if (gap.rank == rank && gap.span.end >= within.begin && gap.span.begin <= within.end &&
                gap.span.length() >= least)
                expected.push_back(gap);
        std::vector<Gap> found;
        table.forEachWide(rank, within, least, [&](const Gap& gap) { found.push_back(gap); });
        ASSERT_EQ(found, expected);
        const auto own = table.of(rank);
        const auto next = std::find_if(own.begin(), own.end(), [&](const Gap& gap) { return gap.span.begin >= begin; });
        ASSERT_EQ(table.from(rank, begin), next == own.end() ? nullptr : &*next);
        const Gap* last = nullptr;
        for (const Gap& gap : own)
            if (gap.span.end <= begin) last = &gap;
        ASSERT_EQ(table.until(rank, begin), last);
    }
}

TEST(GapTable, SumsWhatEachRankWaitedFor)
{
    const GapTable table(traces::gapsOf(*support::twoRanks(), Step{0}));
    ASSERT_EQ(table.idle().size(), 3U);
    EXPECT_EQ(table.idle()[0].stage, Stage{1});
    EXPECT_EQ(table.idle()[0].time, 3 * kMs);
    EXPECT_EQ(table.idle()[1].cause, GapCause::Filling);
    EXPECT_EQ(table.idle()[2].cause, GapCause::Draining);
    EXPECT_EQ(table.idle()[2].time, 2 * kMs);
}

TEST_F(TimelineWidgetTest, ShowsBubblesAndPhasesOfALongStepWhenTheyCome)
{
    const auto trace = longStep();
    trace->addStep({.step = Step{0}, .span = trace->extent(), .loss = {}});
    scene_.setSources({{trace}});
    const TimeNs pause = 1000 * 1000 + 1000; // within one of the longer ones
    scene_.axis().setRange({pause - 20'000, pause + 20'000});
    const QImage before = widget_.grab().toImage();
    EXPECT_TRUE(rulerText(scene_, pause).contains("calculating"));
    EXPECT_EQ(widget_.itemAt(at(1.002, LaneId{0})).kind, TimelineItem::Kind::None);
    ASSERT_TRUE(waitFor(scene_));
    EXPECT_FALSE(widget_.pictureIsCurrent());
    EXPECT_NE(widget_.grab().toImage(), before);
    EXPECT_FALSE(rulerText(scene_, pause).contains("calculating"));
    EXPECT_TRUE(rulerText(scene_, pause).contains("steady"));
    EXPECT_EQ(widget_.itemAt(at(1.002, LaneId{0})).kind, TimelineItem::Kind::Gap);
}

TEST_F(TimelineWidgetTest, FindsTheSelectedBubbleAgainWhenTheNextSimulationIsAnalysed)
{
    scene_.setSources({{longStep(kLong, traces::TraceLabel::Simulated)}});
    scene_.axis().setRange({990'000, 1'020'000});
    widget_.grab();
    ASSERT_TRUE(waitFor(scene_));
    click(at(1.002, LaneId{0}));
    ASSERT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    const Gap chosen = widget_.selection().gap;
    scene_.setSources({{longStep(kLong + 2, traces::TraceLabel::Simulated)}});
    EXPECT_TRUE(widget_.selection().none());
    ASSERT_TRUE(waitFor(scene_));
    ASSERT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    EXPECT_EQ(widget_.selection().gap.span, chosen.span);
}

} // namespace
} // namespace stagecraft::ui
