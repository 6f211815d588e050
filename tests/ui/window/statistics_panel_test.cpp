// SPDX-License-Identifier: GPL-3.0-or-later
//
// The panel of statistics over a workbench: which trace it tells of, what its table says, and where its list leads.
#include "ui/window/statistics_panel.h"

#include "engine/plan/plan_json.h"
#include "tests/ui/support/traces.h"
#include "ui/window/statistics_model.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QLabel>
#include <QListWidget>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <gtest/gtest.h>

#include <stdexcept>

namespace stagecraft::ui {
namespace {

using engine::SessionState;
using traces::ActionKind;

class StatisticsPanelTest : public testing::Test {
protected:
    StatisticsPanelTest() { bench.run().setCommand({STAGECRAFT_FAKE_WORKER, {}}); }
    void show()
    {
        panel.resize(360, 700);
        panel.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&panel));
        settle();
    }
    void settle() { ASSERT_TRUE(QTest::qWaitFor([&] { return !panel.busy(); })); }
    void open(const char* preset, const char* name, int steps = 2)
    {
        engine::Plan plan = engine::presetPlan(preset).value();
        plan.name = name;
        plan.run.steps = steps;
        bench.document().startFrom(plan);
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = panel.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    std::string cell(int row, int column)
    {
        const QAbstractItemModel& table = *the<QTableView>("statisticsTable").model();
        return table.index(row, column).data().toString().toStdString();
    }
    std::string scope() { return the<QLabel>("statisticsScope").text().toStdString(); }
    // Two ranks whose 1F1B takes 1 and 2 ms for F and B, eight steps of it, and one forward of stage 0 that takes 50.
    void openTraceWithOneFarOut()
    {
        traces::Trace trace = *support::twoRanks({.label = traces::TraceLabel::Measured, .unit = std::vector<traces::TimeNs>(8, support::kMs)});
        const traces::TimeNs end = trace.extent().end;
        trace.append(traces::LaneId{0u}, {.begin = end, .end = end + 50 * support::kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0}), .step = traces::Step{8}, .text = {}});
        trace.addStep({.step = traces::Step{8}, .span = {end, end + 50 * support::kMs}, .loss = {}});
        ASSERT_TRUE(bench.showTrace(std::move(trace), "late.strace").ok());
    }

    Workbench bench;
    StatisticsPanel panel{bench};
};

TEST_F(StatisticsPanelTest, TellsOfTheSimulation)
{
    open("twelve-layers", "twelve-layers"); // 4 ranks, 5 micro-batches, 1F1B
    show();
    EXPECT_EQ(the<QComboBox>("statisticsSource").currentText(), "simulated");
    EXPECT_FALSE(the<QComboBox>("statisticsSource").isEnabled());
    ASSERT_EQ(panel.model().rowCount(), 8);
    EXPECT_EQ(cell(0, StatisticsModel::ActionColumn), "0F");
    EXPECT_EQ(cell(0, StatisticsModel::Count), "5");
    EXPECT_EQ(cell(7, StatisticsModel::ActionColumn), "3B");
    EXPECT_EQ(cell(0, StatisticsModel::Median), cell(0, StatisticsModel::MiddleHalf)) << "they all take the same";
    double shares = 0;
    for (const traces::DurationRow& row : panel.model().rows()) shares += row.share.value();
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_EQ(the<QLabel>("farOutTitle").text(), "Far out: none");
    EXPECT_EQ(the<QListWidget>("farOut").count(), 0);
    EXPECT_EQ(the<QTableView>("statisticsTable").currentIndex().row(), 0) << "its histogram is shown";
}

TEST_F(StatisticsPanelTest, SaysThatThereIsNothing)
{
    show();
    EXPECT_EQ(panel.model().rowCount(), 0);
    EXPECT_EQ(scope(), "No trace is shown.");
    EXPECT_FALSE(the<QComboBox>("statisticsSource").isEnabled());
}

// Those of all steps but the first, as analyze prints them.
TEST_F(StatisticsPanelTest, TellsOfARunWithoutItsFirstStep)
{
    open("hello", "hello", 4);
    show();
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().state() == SessionState::Finished; }));
    settle();
    EXPECT_EQ(the<QComboBox>("statisticsSource").currentText(), "measured");
    const int microbatches = bench.document().plan().pipeline.microbatches;
    EXPECT_EQ(cell(0, StatisticsModel::Count), std::to_string(3 * microbatches));
    EXPECT_TRUE(scope().starts_with("4 steps, the first left out")) << scope();
    auto& source = the<QComboBox>("statisticsSource");
    ASSERT_TRUE(source.isEnabled());
    source.setCurrentIndex(source.findText("simulated"));
    emit source.activated(source.currentIndex());
    settle();
    EXPECT_EQ(cell(0, StatisticsModel::Count), std::to_string(microbatches));
    bench.setView(ViewKind::Overlaid); // the same sources otherwise arranged
    settle();
    EXPECT_EQ(source.currentText(), "simulated") << "what was asked for stays";
}

TEST_F(StatisticsPanelTest, FollowsARunThatGoesOn)
{
    open("hello", "hold", 40);
    show();
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().trace() && bench.run().trace()->sliceCount() > 0; }));
    ASSERT_TRUE(QTest::qWaitFor([&] { return panel.model().rowCount() > 0 && scope().find("goes on") != std::string::npos; }));
    const std::string half = cell(0, StatisticsModel::Count);
    the<QTableView>("statisticsTable").selectRow(1);
    bench.run().resume();
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.run().state() == SessionState::Finished; }));
    ASSERT_TRUE(QTest::qWaitFor([&] { return scope().find("goes on") == std::string::npos; }));
    settle();
    EXPECT_GT(std::stoi(cell(0, StatisticsModel::Count)), std::stoi(half));
    EXPECT_EQ(the<QTableView>("statisticsTable").currentIndex().row(), 1) << "the chosen row stays";
}

TEST_F(StatisticsPanelTest, IsWorkedOutOnlyWhileItIsSeen)
{
    open("hello", "hello");
    EXPECT_FALSE(panel.busy());
    EXPECT_EQ(panel.model().rowCount(), 0);
    show();
    EXPECT_GT(panel.model().rowCount(), 0);
}

TEST_F(StatisticsPanelTest, ListsWhatIsFarOutAndLeadsToIt)
{
    openTraceWithOneFarOut();
    show();
    auto& list = the<QListWidget>("farOut");
    ASSERT_EQ(list.count(), 1);
    EXPECT_EQ(list.item(0)->text().toStdString(), "0F0, step 8: 50 ms, 50.0 × the median");
    QSignalSpy wanted(&panel, &StatisticsPanel::wanted);
    the<QTableView>("statisticsTable").selectRow(3);
    list.setCurrentRow(0);
    list.setFocus();
    QTest::keyClick(&list, Qt::Key_Return);
    ASSERT_EQ(wanted.size(), 1);
    const auto item = wanted.front().front().value<TimelineItem>();
    EXPECT_EQ(item.slice, (traces::SliceRef{traces::LaneId{0u}, 32})) << "behind the four blocks of each of eight steps";
    EXPECT_EQ(the<QTableView>("statisticsTable").currentIndex().row(), 0) << "with the histogram that it lies in";
    QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, list.visualItemRect(list.item(0)).center());
    EXPECT_EQ(wanted.size(), 2);
}

TEST_F(StatisticsPanelTest, OrdersItsRowsByAColumn)
{
    openTraceWithOneFarOut();
    show();
    auto& table = the<QTableView>("statisticsTable");
    table.sortByColumn(StatisticsModel::Longest, Qt::DescendingOrder);
    EXPECT_EQ(cell(0, StatisticsModel::ActionColumn), "0F");
    table.sortByColumn(StatisticsModel::Median, Qt::DescendingOrder);
    EXPECT_EQ(cell(0, StatisticsModel::Median), "2 ms");
}

TEST(StatisticsModel, NamesActionsAsSchedulesDo)
{
    const auto text = [](traces::Flow flow, ActionKind kind) {
        return actionText({.stage = traces::Stage{3}, .flow = flow, .kind = kind}).toStdString();
    };
    EXPECT_EQ(text(traces::Flow::Single, ActionKind::Forward), "3F");
    EXPECT_EQ(text(traces::Flow::Down, ActionKind::WeightGrad), "d3W");
    EXPECT_EQ(text(traces::Flow::Up, ActionKind::Overlap), "u3F+B");
    traces::DurationRow row;
    row.statistics = {.stage = traces::Stage{3}, .kind = ActionKind::InputGrad};
    row.place = traces::StagePlace{traces::Rank{1}, 1};
    EXPECT_EQ(actionName(row).toStdString(), "input gradient of stage 3, rank 1, chunk 1");
}

TEST(StatisticsModel, TellsTheMiddleHalfInOneUnitWhereItCan)
{
    StatisticsModel model;
    traces::DurationRow row;
    row.statistics = {.count = 3, .median = 2'000'000, .lowerQuartile = 1'500'000, .upperQuartile = 2'250'000};
    traces::DurationRow across = row;
    across.statistics.lowerQuartile = 900'000;
    across.statistics.kind = ActionKind::Forward;
    model.setRows({row, across});
    EXPECT_EQ(model.index(0, StatisticsModel::MiddleHalf).data().toString().toStdString(), "1.5–2.25 ms");
    EXPECT_EQ(model.index(1, StatisticsModel::MiddleHalf).data().toString().toStdString(), "900 µs – 2.25 ms");
}

} // namespace
} // namespace stagecraft::ui
