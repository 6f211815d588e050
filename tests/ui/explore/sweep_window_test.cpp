// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/sweep_window.h"

#include "ui/explore/schedule_list.h"
#include "ui/lab/plan_document.h"
#include "ui/plots/sweep_plot.h"

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

class SweepWindowTest : public testing::Test {
protected:
    SweepWindowTest()
    {
        window.show();
        the<ScheduleList>("sweepSchedules").check({"gpipe", "dualpipe"});
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = window.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    void choose(engine::SweepQuantity quantity)
    {
        auto& box = the<QComboBox>("sweepQuantity");
        box.setCurrentIndex(box.findData(static_cast<int>(quantity)));
    }
    void type(const char* field, const char* text)
    {
        the<QLineEdit>(field).selectAll();
        QTest::keyClicks(&the<QLineEdit>(field), text);
    }
    bool sweep()
    {
        QSignalSpy swept(&window, &SweepWindow::swept);
        QTest::mouseClick(&the<QPushButton>("sweepStart"), Qt::LeftButton);
        return swept.wait();
    }

    QTemporaryDir folder;
    QString chosen;
    QStringList told;
    PlanDocument document; // 1f1b on 4 ranks, 8 micro-batches
    SweepWindow window{document,
                       {.openFile = {},
                        .saveFile = [this](const QString&, const QString&, const QString&) { return chosen; },
                        .unsaved = {},
                        .tellProblem = [this](const QString&, const QString& text) { told << text; },
                        .giveUp = {}}};
};

TEST_F(SweepWindowTest, PlotsWhatIsAskedForAndSaysWhatWasLeftOut)
{
    type("sweepValues", "7,8");
    ASSERT_TRUE(sweep());
    const engine::Sweep& shown = window.plot().sweep();
    ASSERT_EQ(shown.series.size(), 2U);
    EXPECT_EQ(shown.series[0].points.size(), 2U);
    EXPECT_NEAR(shown.series[0].points[1].bubbleMakespan, 3.0 / 11, 1e-12);
    EXPECT_EQ(shown.series[1].points.size(), 1U);
    EXPECT_TRUE(the<QLabel>("sweepNotes").text().startsWith("DualPipe leaves out 7: "));
    EXPECT_TRUE(the<QPushButton>("sweepPicture").isEnabled());
}

TEST_F(SweepWindowTest, SaysWhyItCannot)
{
    type("sweepValues", "8..1");
    QTest::keyClick(&window, Qt::Key_Return); // the default button
    EXPECT_TRUE(the<QLabel>("sweepProblem").text().contains("goes down"));
    the<ScheduleList>("sweepSchedules").check({});
    QTest::keyClick(&window, Qt::Key_Return);
    EXPECT_EQ(the<QLabel>("sweepProblem").text(), "Check at least one schedule.");
    EXPECT_FALSE(window.busy());
}

TEST_F(SweepWindowTest, OffersOnlyWhatTheQuantityTakesAndKeepsWhatWasTyped)
{
    EXPECT_FALSE(the<QLineEdit>("sweepBatch").isVisible());
    EXPECT_FALSE(the<QComboBox>("sweepScaling").isVisible());
    type("sweepValues", "3,5");
    choose(engine::SweepQuantity::Ranks);
    EXPECT_TRUE(the<QComboBox>("sweepScaling").isVisible());
    EXPECT_EQ(the<QLineEdit>("sweepValues").text(), "1..16");
    choose(engine::SweepQuantity::Microbatches);
    EXPECT_EQ(the<QLineEdit>("sweepValues").text(), "3,5");
}

TEST_F(SweepWindowTest, VariesTheMachineFromTheValuesThatItOffers)
{
    engine::Plan plan = document.plan();
    plan.machine.ranksPerNode = 2;
    document.edit(plan, "ranks per node");
    the<ScheduleList>("sweepSchedules").check({"gpipe"});
    for (const engine::SweepQuantityInfo& info : engine::sweepQuantities()) {
        choose(info.quantity);
        EXPECT_TRUE(engine::parseSweepValues(info.quantity, the<QLineEdit>("sweepValues").text().toStdString()).ok()) << info.key;
    }
    choose(engine::SweepQuantity::NodeLatency);
    ASSERT_TRUE(sweep());
    const engine::SweepSeries& series = window.plot().sweep().series.front();
    ASSERT_EQ(series.points.size(), 11U);
    EXPECT_EQ(series.points.back().makespan, 34'000'000) << "33 ms and 500 us there and back over the one boundary between nodes";
}

// b* = sqrt(64·1.5/(3·3)) = 3.266 by hand: F+B = 3 ms, each of the two costs 0.75 ms beside, p = 4
TEST_F(SweepWindowTest, ShowsTheBestMicrobatchSize)
{
    choose(engine::SweepQuantity::MicrobatchSize);
    type("sweepBatch", "64");
    type("sweepFixedCost", "750us");
    ASSERT_TRUE(sweep());
    EXPECT_TRUE(the<QLabel>("sweepNotes").text().contains("b* = √(B·α/((p−1)·β)) = 3.266")) << the<QLabel>("sweepNotes").text().toStdString();
}

TEST_F(SweepWindowTest, CanBeCancelledAndKeepsTheCurvesFromBefore)
{
    type("sweepValues", "8");
    ASSERT_TRUE(sweep());
    type("sweepValues", "20000..40000+100");
    QTest::mouseClick(&the<QPushButton>("sweepStart"), Qt::LeftButton);
    EXPECT_TRUE(window.busy());
    QTest::mouseClick(&the<QPushButton>("sweepCancel"), Qt::LeftButton);
    EXPECT_FALSE(window.busy());
    EXPECT_EQ(window.plot().sweep().axis.values, std::vector<double>{8});
    EXPECT_TRUE(the<QLabel>("sweepProblem").text().startsWith("Cancelled"));
}

TEST_F(SweepWindowTest, ExportsPictureAndTable)
{
    type("sweepValues", "4,8");
    ASSERT_TRUE(sweep());
    chosen = folder.filePath("points.csv");
    QTest::mouseClick(&the<QPushButton>("sweepTable"), Qt::LeftButton);
    QFile csv(chosen);
    ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
    EXPECT_TRUE(csv.readAll().startsWith("schedule,microbatches,bubble_makespan"));
    chosen = folder.filePath("curves.svg");
    QTest::mouseClick(&the<QPushButton>("sweepPicture"), Qt::LeftButton);
    EXPECT_TRUE(QFile::exists(chosen));
    chosen = "/no/such/folder/curves.svg";
    QTest::mouseClick(&the<QPushButton>("sweepPicture"), Qt::LeftButton);
    EXPECT_EQ(told.size(), 1);
}

TEST_F(SweepWindowTest, MarksCurvesOfAnEarlierPlan)
{
    type("sweepValues", "4,8");
    ASSERT_TRUE(sweep());
    EXPECT_EQ(window.windowTitle(), "Curves");
    engine::Plan plan = document.plan();
    plan.pipeline.ranks = 8;
    document.edit(plan, "ranks");
    EXPECT_EQ(window.windowTitle(), "Curves (of the plan before; sweep again)");
}

} // namespace
} // namespace stagecraft::ui
