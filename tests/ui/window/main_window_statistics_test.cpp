// SPDX-License-Identifier: GPL-3.0-or-later
//
// The panel of statistics in its window: how it is found, and what its list does to the timeline.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/timeline_widget.h"

#include <QAction>
#include <QDockWidget>
#include <QListWidget>
#include <QMenu>
#include <QScrollBar>
#include <QTableView>

namespace stagecraft::ui {
namespace {

// Gone from the workbench's simulation: a backward of a run takes far longer than its like.
traces::Trace lateTrace(const traces::Trace& simulated)
{
    traces::Trace trace;
    trace.info = simulated.info;
    trace.info.label = traces::TraceLabel::Measured;
    for (const traces::Lane& lane : simulated.lanes()) trace.addLane(lane.info());
    const traces::TimeNs length = simulated.extent().length();
    for (int step = 0; step < 6; ++step)
        for (std::size_t lane = 0; lane < simulated.laneCount(); ++lane)
            for (std::size_t i = 0; i < simulated.lane(traces::LaneId{lane}).size(); ++i) {
                traces::Slice slice = simulated.lane(traces::LaneId{lane}).slice(i);
                slice.begin += step * 2 * length;
                slice.end += step * 2 * length;
                if (step == 4 && lane == 0 && i + 1 == simulated.lane(traces::LaneId{lane}).size()) slice.end += length / 2;
                slice.step = traces::Step{step};
                trace.append(traces::LaneId{lane}, slice);
            }
    for (int step = 0; step < 6; ++step) trace.addStep({traces::Step{step}, {step * 2 * length, step * 2 * length + length}, {}});
    return trace;
}

class MainWindowStatisticsTest : public MainWindowTest {
protected:
    void openLateTrace()
    {
        openPlan("twelve-layers", "twelve-layers");
        ASSERT_TRUE(window->workbench().showTrace(lateTrace(*window->workbench().simulation().simulation().trace), "late.strace").ok());
    }
    QDockWidget& dock() { return the<QDockWidget>("statisticsDock"); }
    void raise()
    {
        dock().raise();
        ASSERT_TRUE(QTest::qWaitFor([&] { return !dock().visibleRegion().isEmpty() && the<QTableView>("statisticsTable").model()->rowCount() > 0; }));
    }
};

TEST_F(MainWindowStatisticsTest, IsATabBesideTheFiguresAndInTheMenu)
{
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_TRUE(window->tabifiedDockWidgets(&the<QDockWidget>("figuresDock")).contains(&dock()));
    EXPECT_TRUE(window->actions().panelMenu->actions().contains(dock().toggleViewAction()));
    window->actions().statistics->trigger();
    QCoreApplication::processEvents();
    EXPECT_FALSE(dock().visibleRegion().isEmpty()) << "in front";
    EXPECT_TRUE(the<QTableView>("statisticsTable").hasFocus() || !window->isActiveWindow());
    dock().close();
    window->actions().statistics->trigger();
    EXPECT_FALSE(dock().isHidden());
}

// The list stays in front: whoever goes through it wants to see the next one too.
TEST_F(MainWindowStatisticsTest, GoesToABlockThatIsFarOut)
{
    window->resize(1280, 800);
    openLateTrace();
    raise();
    auto& list = the<QListWidget>("farOut");
    ASSERT_EQ(list.count(), 1);
    list.setCurrentRow(0);
    QTest::keyClick(&list, Qt::Key_Return);
    const TimelineItem& selected = window->timeline().selection();
    ASSERT_EQ(selected.kind, TimelineItem::Kind::Slice);
    EXPECT_EQ(window->workbench().scene().trace(selected.source).slice(selected.slice).step, traces::Step{4});
    const std::optional<traces::Interval> span = window->workbench().scene().shownSpan(selected);
    ASSERT_TRUE(span);
    const TimeRange& range = window->workbench().scene().axis().range();
    EXPECT_GE(span->begin, range.first());
    EXPECT_LE(span->end, range.last()) << "in sight";
    QCoreApplication::processEvents();
    EXPECT_FALSE(dock().visibleRegion().isEmpty());
}

TEST_F(MainWindowStatisticsTest, CutsNothingOffBesideTheTimeline)
{
    window->resize(1280, 800);
    openPlan("gpt-small", "gpt-small");
    raise();
    QCoreApplication::processEvents();
    const QScrollBar& sideways = *the<QTableView>("statisticsTable").horizontalScrollBar();
    EXPECT_TRUE(QTest::qWaitFor([&] { return !sideways.isVisible(); })) << "once the layout has come to rest";
}

} // namespace
} // namespace stagecraft::ui
