// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/comparison_window.h"

#include "engine/explain/family_shape.h"
#include "tests/ui/support/traces.h"
#include "ui/explore/schedule_list.h"
#include "ui/window/workbench.h"

#include <QCheckBox>
#include <QFile>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

ComparedStep stepOf(const char* title, traces::TimeNs makespan, double bubble)
{
    ComparedStep step{.title = title, .figures = {}, .microbatches = 8};
    step.figures.makespan = step.figures.maxSpan = makespan;
    step.figures.bubbleMakespan = bubble;
    step.figures.ranks.resize(1);
    return step;
}

TEST(Comparison, TellsHowEachDiffersFromTheFirst)
{
    const std::vector<QStringList> rows = comparisonTable({stepOf("GPipe", 33'000'000, 3.0 / 11), stepOf("ZB-H1", 27'000'000, 1.0 / 9)});
    EXPECT_EQ(rows[0], QStringList({"", "GPipe", "ZB-H1"}));
    EXPECT_EQ(rows[1], QStringList({"step", "33 ms", "27 ms (−18.18 %)"}));
    EXPECT_THAT(rows, testing::Contains(QStringList({"bubble of the makespan", "27.27 %", "11.11 % (−16.16 points)"})));
    EXPECT_THAT(rows, testing::Contains(QStringList({"throughput, micro-batches/s", "242.4", "296.3 (+22.22 %)"})));
    for (const QStringList& row : rows) EXPECT_NE(row.front(), "peak memory"); // nobody knows it
}

class ComparisonWindowTest : public testing::Test {
protected:
    ComparisonWindowTest()
    {
        bench.document().startFrom({}); // 1f1b on 4 ranks with 8 micro-batches
        window.show();
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = window.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    bool compare(const std::vector<std::string>& schedules)
    {
        the<ScheduleList>("comparisonSchedules").check(schedules);
        QSignalSpy compared(&window, &ComparisonWindow::compared);
        QTest::mouseClick(&the<QPushButton>("comparisonStart"), Qt::LeftButton);
        return compared.wait();
    }

    QTemporaryDir folder;
    QString chosen;
    Workbench bench;
    ComparisonWindow window{bench,
                            {.openFile = {},
                             .saveFile = [this](const QString&, const QString&, const QString&) { return chosen; },
                             .unsaved = {},
                             .tellProblem = {},
                             .giveUp = {}}};
};

TEST_F(ComparisonWindowTest, StacksSchedulesOnOneTimeAxisWithATable)
{
    ASSERT_TRUE(compare({"gpipe", "zb-h1", "dualpipe"}));
    ASSERT_EQ(window.scene().sourceCount(), 3);
    EXPECT_EQ(window.scene().arrangement(), Arrangement::Stacked);
    EXPECT_EQ(window.scene().extent().length(), 33'000'000); // the longest, GPipe's 33 slots
    const auto& table = the<QTableWidget>("comparisonTable");
    EXPECT_EQ(table.horizontalHeaderItem(1)->text(), "ZB-H1");
    EXPECT_EQ(table.verticalHeaderItem(0)->text(), "step");
    EXPECT_EQ(table.item(0, 1)->text(), "27 ms (−18.18 %)");
    EXPECT_EQ(table.item(0, 2)->text(), "26 ms (−21.21 %)");
}

TEST_F(ComparisonWindowTest, NeedsTwoAndSaysWhatARefusedOneLacks)
{
    the<ScheduleList>("comparisonSchedules").check({"gpipe"});
    QTest::mouseClick(&the<QPushButton>("comparisonStart"), Qt::LeftButton);
    EXPECT_EQ(the<QLabel>("comparisonProblem").text(), "Check two or more.");
    engine::Plan plan;
    plan.pipeline.microbatches = 6;
    bench.document().startFrom(plan);
    ASSERT_TRUE(compare({"gpipe", "1f1b", "dualpipe"}));
    EXPECT_EQ(window.steps().size(), 2U);
    EXPECT_TRUE(the<QLabel>("comparisonProblem").text().contains("use at least 2p = 8"));
}

TEST_F(ComparisonWindowTest, SetsTheOpenTraceBesideThem)
{
    EXPECT_FALSE(the<QCheckBox>("comparisonWithTrace").isEnabled());
    ASSERT_TRUE(bench.showTrace(*support::twoRanks({.label = traces::TraceLabel::Imported}), "other.json").ok());
    ASSERT_TRUE(the<QCheckBox>("comparisonWithTrace").isEnabled());
    the<QCheckBox>("comparisonWithTrace").setChecked(true);
    ASSERT_TRUE(compare({"gpipe"}));
    ASSERT_EQ(window.steps().size(), 2U);
    EXPECT_EQ(window.steps()[1].title, "imported trace");
}

TEST_F(ComparisonWindowTest, ExportsTimelinesAndTableTogether)
{
    ASSERT_TRUE(compare({"gpipe", "zb-h1"}));
    chosen = folder.filePath("comparison.svg");
    QTest::mouseClick(&the<QPushButton>("comparisonExport"), Qt::LeftButton);
    QFile file(chosen);
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    const QByteArray svg = file.readAll();
    EXPECT_TRUE(svg.contains("simulated · 4 ranks · 8 micro-batches")) << "said once, and no schedule stands for both";
    for (const char* text : {"GPipe", "ZB-H1", "bubble of the span", "27 ms (−18.18 %)"}) EXPECT_TRUE(svg.contains(text)) << text;
}

} // namespace
} // namespace stagecraft::ui
