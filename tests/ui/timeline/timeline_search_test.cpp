// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a text finds among the blocks of a scene, and the bar in the timeline that leads there.
#include "tests/ui/timeline/timeline_widget_fixture.h"

#include "ui/timeline/timeline_search.h"

#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QToolButton>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::LaneId;
using traces::Rank;
using traces::SliceRef;
using traces::Stage;
using traces::Step;

// A lane of forwards of 1 us without a pause; micro-batches 0..99 in turn.
std::shared_ptr<traces::Trace> manySlices(std::size_t slices)
{
    auto trace = std::make_shared<traces::Trace>();
    trace->info.label = traces::TraceLabel::Measured;
    const LaneId lane = trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    for (std::size_t i = 0; i < slices; ++i)
        trace->append(lane, {.begin = static_cast<traces::TimeNs>(i) * 1000,
                             .end = static_cast<traces::TimeNs>(i + 1) * 1000,
                             .action = traces::forward(Stage{0}, traces::MicroBatch{i % 100}),
                             .step = {},
                             .text = {}});
    return trace;
}

TEST(TimelineSearch, FollowsTheTextAtOnceWhereItIsQuick)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    TimelineSearch search(scene);
    QSignalSpy changed(&search, &TimelineSearch::changed);
    search.setText("f");
    EXPECT_EQ(search.count(), 4U);
    search.setText("f1");
    EXPECT_EQ(search.count(), 2U);
    search.setText("f1 stage");
    EXPECT_TRUE(search.problem().contains("number"));
    EXPECT_EQ(search.count(), 0U);
    search.setText("f1 stage 1");
    EXPECT_TRUE(search.problem().isEmpty());
    EXPECT_EQ(search.count(), 1U);
    search.setText("");
    EXPECT_EQ(search.count(), 0U);
    EXPECT_EQ(changed.count(), 5);
    EXPECT_FALSE(search.busy());
}

TEST(TimelineSearch, GoesThroughTheSourcesAndRound)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .start = 100 * kMs})}});
    TimelineSearch search(scene);
    search.setText("send");
    ASSERT_EQ(search.count(), 2U);
    const TimelineItem first = search.next({}, Direction::On, 0);
    EXPECT_EQ(first.source, 0);
    EXPECT_EQ(first.slice, (SliceRef{LaneId{2}, 0}));
    const TimelineItem second = search.next(first, Direction::On, 0);
    EXPECT_EQ(second.source, 1);
    EXPECT_EQ(search.placeOf(second), 1U);
    EXPECT_EQ(search.next(second, Direction::On, 0), first);
    EXPECT_EQ(search.next(first, Direction::Back, 0), second);
    EXPECT_FALSE(search.placeOf({.kind = TimelineItem::Kind::Slice, .source = 0, .slice = {LaneId{0}, 0}}));
}

TEST(TimelineSearch, BeginsAtTheViewOrTheSelection)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}});
    TimelineSearch search(scene);
    search.setText("B");
    EXPECT_EQ(search.next({}, Direction::On, 3 * kMs).slice, (SliceRef{LaneId{0}, 2})); // 0B0 begins at 4
    EXPECT_EQ(search.next({}, Direction::Back, 3 * kMs).slice, (SliceRef{LaneId{1}, 1}));
    const TimelineItem forward{.kind = TimelineItem::Kind::Slice, .source = 0, .slice = {LaneId{1}, 2}}; // 1F1 at 4
    EXPECT_EQ(search.next(forward, Direction::On, 0).slice, (SliceRef{LaneId{1}, 3}));
    const TimelineItem bubble{
        .kind = TimelineItem::Kind::Gap, .source = 0, .gap = scene.gaps(0, Step{0}).of(Rank{0}).front()};
    EXPECT_EQ(search.next(bubble, Direction::On, 0).slice, (SliceRef{LaneId{0}, 2})); // the block that ends it
}

TEST(TimelineSearch, LooksOnlyWhereThereAreRows)
{
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured})}}, Arrangement::Overlaid);
    TimelineSearch search(scene);
    search.setText("send");
    ASSERT_EQ(search.count(), 1U);
    EXPECT_EQ(search.next({}, Direction::On, 0).source, 1); // the other is an outline
    scene.setArrangement(Arrangement::Stacked);
    EXPECT_EQ(search.count(), 2U);
}

TEST(TimelineSearch, GrowsWithARun)
{
    const auto whole = twoRanks({.label = traces::TraceLabel::Measured});
    const auto live = std::make_shared<traces::Trace>();
    live->info = whole->info;
    TimelineScene scene;
    scene.setSources({{twoRanks()}, {live, {}, true}}, Arrangement::Overlaid);
    TimelineSearch search(scene);
    search.setText("F0");
    EXPECT_EQ(search.count(), 2U); // of the simulation, while the run has nothing
    for (const traces::Lane& lane : whole->lanes()) live->addLane(lane.info());
    live->append(LaneId{0}, whole->slice({LaneId{0}, 0}));
    scene.dataArrived();
    EXPECT_EQ(search.count(), 1U);
    EXPECT_EQ(search.next({}, Direction::On, 0).source, 1);
    live->append(LaneId{1}, whole->slice({LaneId{1}, 0}));
    scene.dataArrived();
    EXPECT_EQ(search.count(), 2U);
}

TEST(TimelineSearch, LooksThroughManySlicesBesideTheWindow)
{
    constexpr std::size_t kMany = TimelineSearch::kDirectSlices + 100;
    const auto trace = manySlices(kMany);
    TimelineScene scene;
    scene.setSources({{trace, {}, true}});
    TimelineSearch search(scene);
    search.setText("mb 9");
    search.setText("mb 99");
    EXPECT_TRUE(search.busy());
    for (std::size_t i = 0; i < 200; ++i) // the run goes on meanwhile
        trace->append(LaneId{0}, {.begin = trace->extent().end,
                                  .end = trace->extent().end + 1000,
                                  .action = traces::forward(Stage{0}, traces::MicroBatch{i % 100}),
                                  .step = {},
                                  .text = {}});
    scene.dataArrived();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !search.busy(); }));
    EXPECT_EQ(search.count(), kMany / 100 + 2);
    const TimelineItem last = search.next({}, Direction::Back, scene.extent().end + 1);
    EXPECT_EQ(search.placeOf(last), search.count() - 1);
    EXPECT_EQ(last.slice.index, trace->sliceCount() - 1);
}

TEST(TimelineSearch, KeepsWhatItKnowsOfASourceThatStays)
{
    const auto large = manySlices(TimelineSearch::kDirectSlices + 100);
    TimelineScene scene;
    scene.setSources({{large}});
    TimelineSearch search(scene);
    search.setText("mb 99");
    ASSERT_TRUE(QTest::qWaitFor([&] { return !search.busy(); }));
    const std::size_t known = search.count();
    scene.setSources({{twoRanks()}, {large}}); // an edit simulates the plan anew
    EXPECT_FALSE(search.busy());
    EXPECT_EQ(search.count(), known);
}

class SearchBarTest : public TimelineWidgetTest {
protected:
    SearchBarTest()
    {
        widget_.activateWindow();
        widget_.setFocus();
        QApplication::processEvents();
        key(Qt::Key_Slash);
    }
    QWidget& bar() { return *widget_.findChild<QWidget*>("searchBar"); }
    QLineEdit& field() { return *widget_.findChild<QLineEdit*>("searchField"); }
    QString result() { return widget_.findChild<QLabel*>("searchResult")->text(); }
    void type(const char* text)
    {
        field().selectAll();
        QTest::keyClicks(&field(), text);
    }
};

TEST_F(SearchBarTest, OpensWithASlashAndClosesWithEscape)
{
    EXPECT_TRUE(bar().isVisible());
    EXPECT_TRUE(field().hasFocus());
    const double lanes = widget_.shown().lanesHeight;
    QTest::keyClick(&field(), Qt::Key_Escape);
    EXPECT_FALSE(bar().isVisible());
    EXPECT_TRUE(widget_.hasFocus());
    EXPECT_GT(widget_.shown().lanesHeight, lanes); // the bar lies under the lanes, not over them
    key(Qt::Key_Slash);
    EXPECT_TRUE(field().hasFocus());
}

TEST_F(SearchBarTest, SaysHowManyMatchesAndWhichOneIsSelected)
{
    type("F1");
    EXPECT_EQ(result(), "2 matches");
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 1}));
    EXPECT_EQ(result(), "1 of 2");
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_EQ(selected(), (SliceRef{LaneId{1}, 2}));
    EXPECT_EQ(result(), "2 of 2");
    EXPECT_EQ(field().accessibleDescription(), "2 of 2");
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_EQ(result(), "1 of 2");
    QTest::keyClick(&field(), Qt::Key_Enter, Qt::ShiftModifier);
    EXPECT_EQ(result(), "2 of 2");
    type("F7");
    EXPECT_EQ(result(), "nothing matches");
    type("mb");
    EXPECT_TRUE(result().contains("number")) << result().toStdString();
    type("send");
    EXPECT_EQ(result(), "1 match");
    EXPECT_TRUE(field().hasFocus());
}

TEST_F(SearchBarTest, GoesOnByKeysOfTheTimeline)
{
    type("F1");
    QTest::keyClick(&field(), Qt::Key_Escape);
    key(Qt::Key_N);
    EXPECT_TRUE(bar().isVisible());
    EXPECT_TRUE(widget_.hasFocus());
    EXPECT_EQ(result(), "1 of 2");
    key(Qt::Key_N);
    EXPECT_EQ(result(), "2 of 2");
    key(Qt::Key_N, Qt::ShiftModifier);
    EXPECT_EQ(result(), "1 of 2");
    click(at(5.5, LaneId{1}));
    EXPECT_EQ(result(), "2 matches"); // another block was selected
}

TEST_F(SearchBarTest, AsksForATextBeforeItGoesAnywhere)
{
    QTest::keyClick(&field(), Qt::Key_Escape);
    key(Qt::Key_N);
    EXPECT_TRUE(field().hasFocus());
    EXPECT_TRUE(widget_.selection().none());
}

TEST_F(SearchBarTest, UnfoldsTheRankOfAMatch)
{
    widget_.setAllFolded(true);
    ASSERT_EQ(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    type("send");
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_NE(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    EXPECT_EQ(selected(), (SliceRef{LaneId{2}, 0}));
}

TEST_F(SearchBarTest, ZoomsNoMoreThanAMatchNeedsToBeSeen)
{
    type("F1");
    const TimeRange all = range();
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_EQ(range(), all); // seen as it was

    scene_.setSources({{manySlices(50'000)}});
    type("0F1");
    QTest::keyClick(&field(), Qt::Key_Return);
    QTest::keyClick(&field(), Qt::Key_Return);
    const auto span = *scene_.shownSpan(widget_.selection());
    EXPECT_EQ(span.begin, 101'000);
    const double zoomed = range().length;
    EXPECT_NEAR(widget_.mapping().pixels(span.length()), 12, 0.5);
    EXPECT_GT(widget_.mapping().x(span.begin), widget_.headerWidth());
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_EQ(range().length, zoomed);
    scene_.axis().setRange({201'200, 201'300}); // within the selected block
    QTest::keyClick(&field(), Qt::Key_Return);
    EXPECT_GT(range().length, 1000);
    scene_.axis().back();
    EXPECT_EQ(range().first(), 201'200);
}

TEST_F(SearchBarTest, WaitsForTheSearchBeforeItGoesThere)
{
    scene_.setSources({{manySlices(TimelineSearch::kDirectSlices + 100)}});
    type("mb 99");
    EXPECT_EQ(result(), "searching\u2026");
    QTest::keyClick(&field(), Qt::Key_Return);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !widget_.selection().none(); }));
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 99}));
    EXPECT_EQ(result(), QString("1 of %L1").arg(widget_.search().count()));
}

TEST_F(SearchBarTest, NamesWhatTabReaches)
{
    type("F1");
    for (const QToolButton* button : bar().findChildren<QToolButton*>()) {
        if (button->parentWidget() != &bar()) continue; // the field's own
        EXPECT_FALSE(button->accessibleName().isEmpty());
        EXPECT_FALSE(button->toolTip().isEmpty());
        EXPECT_TRUE(button->focusPolicy() & Qt::TabFocus);
    }
    EXPECT_FALSE(field().accessibleName().isEmpty());
    EXPECT_FALSE(field().placeholderText().isEmpty());
}

} // namespace
} // namespace stagecraft::ui
