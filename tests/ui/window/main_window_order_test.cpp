// SPDX-License-Identifier: GPL-3.0-or-later
//
// The order edited on the timeline, and what explains a step, pressed as a user presses it.
#include "main_window_fixture.h"
#include "test_plans.h"

#include "traces/format/input_file.h"
#include "ui/plots/memory_plot.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/order_editor.h"
#include "ui/window/waterfall_panel.h"

#include <QCheckBox>
#include <QDockWidget>
#include <QPushButton>

namespace stagecraft::ui {
namespace {

using testing::HasSubstr;

class EditOrder : public MainWindowTest {
protected:
    EditOrder()
    {
        window->resize(1600, 1000);
        window->workbench().document().startFrom(planOf(pipelineOf("gpipe", 2, 1, 2)));
        QApplication::processEvents();
    }

    TimelineWidget& timeline() { return window->timeline(); }
    // The middle of a rank's block.
    QPointF middleOf(int rank, std::uint32_t index)
    {
        const traces::Trace& trace = window->workbench().scene().trace(0);
        const traces::Slice slice = trace.slice({traces::LaneId{rank}, index});
        return at(rank, slice.begin + slice.duration() / 2);
    }
    QPointF at(int rank, traces::TimeNs time)
    {
        const Row* row = timeline().laneLayout().rowOf(0, traces::LaneId{rank});
        const TimelinePainter painter(timeline().theme(), timeline().font());
        return {timeline().mapping().x(time), painter.rulerHeight() + row->y + row->height / 2};
    }
    void send(QEvent::Type type, QPointF pos, Qt::MouseButton button, Qt::MouseButtons held)
    {
        QMouseEvent event(type, pos, timeline().mapToGlobal(pos), button, held, {});
        QApplication::sendEvent(&timeline(), &event);
    }
    void take(QPointF from, QPointF to)
    {
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        for (int i = 1; i <= 4; ++i) send(QEvent::MouseMove, from + (to - from) * i / 4.0, Qt::NoButton, Qt::LeftButton);
    }
    void drop(QPointF pos) { send(QEvent::MouseButtonRelease, pos, Qt::LeftButton, Qt::NoButton); }
    const HoverLayer::State& hover() { return timeline().findChild<HoverLayer*>()->state(); }
    const engine::PipelineSpec& pipeline() { return window->workbench().document().plan().pipeline; }
};

TEST_F(EditOrder, DragsABlockToAnotherPlace)
{
    const QPointF from = middleOf(1, 2);
    const QPointF to = at(1, 2'100'000); // 1B0 to the first half of 1F1, which begins at 2 ms
    take(from, to);
    drop(to);
    EXPECT_EQ(pipeline().schedule, "gpipe") << "a drag moves the view";

    timeline().fitAll();
    press(window->actions().editOrder);
    EXPECT_TRUE(the<QWidget>("orderBar").isVisible());
    take(middleOf(1, 2), at(1, 2'100'000));
    EXPECT_FALSE(hover().held.isEmpty());
    EXPECT_TRUE(hover().dropLegal);
    EXPECT_EQ(hover().dropText, "legal");
    EXPECT_EQ(pipeline().schedule, "gpipe") << "not before it is dropped";
    drop(at(1, 2'100'000));
    EXPECT_TRUE(hover().held.isEmpty());
    EXPECT_EQ(pipeline().customSchedule, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    EXPECT_EQ(window->workbench().scene().trace(0).sliceName({traces::LaneId{1}, 1}), "1B0");
    press(window->actions().undo);
    EXPECT_EQ(pipeline().schedule, "gpipe");
}

TEST_F(EditOrder, ShowsWhyAPlaceIsIllegalAndLeavesTheOrder)
{
    press(window->actions().editOrder);
    take(middleOf(0, 2), at(0, 100'000)); // 0B0 before 0F0
    EXPECT_FALSE(hover().dropLegal);
    EXPECT_THAT(hover().dropText.toStdString(), HasSubstr("0B0 comes before 0F0"));
    drop(at(0, 100'000));
    EXPECT_EQ(pipeline().schedule, "gpipe");
    EXPECT_THAT(the<QLabel>("orderText").text().toStdString(), HasSubstr("The order stays as it was"));

    take(middleOf(0, 2), at(0, 100'000));
    QTest::keyClick(&timeline(), Qt::Key_Escape);
    EXPECT_TRUE(hover().held.isEmpty());
    drop(at(0, 100'000));
    EXPECT_EQ(pipeline().schedule, "gpipe");
}

TEST_F(EditOrder, KeepsADeadlockAndShowsTheCircle)
{
    press(window->actions().editOrder);
    QTest::mouseClick(&the<QCheckBox>("keepIllegal"), Qt::LeftButton, {}, QPoint(8, the<QCheckBox>("keepIllegal").height() / 2));
    ASSERT_TRUE(window->order().keepsIllegal());
    take(middleOf(0, 2), at(0, 1'100'000)); // 0B0 before 0F1
    EXPECT_FALSE(hover().dropLegal);
    drop(at(0, 1'100'000));
    EXPECT_EQ(pipeline().customSchedule, "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    const QString banner = the<QLabel>("banner").text();
    EXPECT_TRUE(the<QLabel>("banner").isVisible());
    EXPECT_THAT(banner.toStdString(), HasSubstr("rank 0 cannot start 0B0 before 1B0 of rank 1, rank 1 cannot start 1F1 before 0F1 of rank 0"));
    EXPECT_EQ(window->workbench().scene().sources().front().stuck.size(), 2U);
    EXPECT_FALSE(window->grab().isNull());
    press(window->actions().undo);
    EXPECT_FALSE(the<QLabel>("banner").isVisible());
}

TEST_F(EditOrder, MovesTheSelectedBlockByKeys)
{
    timeline().setFocus();
    timeline().select({.kind = TimelineItem::Kind::Slice, .source = 0, .segment = 0, .slice = {traces::LaneId{1}, 2}});
    QTest::keyClick(&timeline(), Qt::Key_Left, Qt::ControlModifier);
    EXPECT_EQ(pipeline().customSchedule, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    EXPECT_EQ(window->workbench().scene().trace(0).sliceName(timeline().selection().slice), "1B0") << "it stays selected";
    QTest::keyClick(&timeline(), Qt::Key_Right, Qt::ControlModifier);
    EXPECT_EQ(pipeline().customSchedule, "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
    QTest::keyClick(&timeline(), Qt::Key_E);
    EXPECT_TRUE(window->actions().editOrder->isChecked());
    QTest::mouseClick(&the<QPushButton>("orderDone"), Qt::LeftButton);
    EXPECT_FALSE(timeline().moving());
}

TEST_F(EditOrder, SavesTheOrder)
{
    chosen = folder.filePath("mine.csv");
    press(window->actions().editOrder);
    QTest::mouseClick(&the<QPushButton>("saveSchedule"), Qt::LeftButton);
    EXPECT_EQ(traces::readWholeFile(chosen.toStdString()).value(), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
}

TEST_F(EditOrder, DrawsTheCriticalPath)
{
    QTest::keyClick(&timeline(), Qt::Key_P);
    EXPECT_TRUE(timeline().criticalPath());
    EXPECT_TRUE(window->actions().criticalPath->isChecked());
    const QImage picture = timeline().grab().toImage();
    const QPointF foot = middleOf(0, 0); // the first forward of all is on it
    const Row* row = timeline().laneLayout().rowOf(0, traces::LaneId{0});
    const QPoint pixel(static_cast<int>(foot.x()), static_cast<int>(foot.y() + row->height / 2 - 3));
    EXPECT_EQ(QColor(picture.pixel(pixel)), timeline().theme().path);
    press(window->actions().criticalPath);
    EXPECT_FALSE(timeline().criticalPath());
}

TEST_F(EditOrder, SplitsTheStepWhileThePanelIsSeen)
{
    auto& dock = the<QDockWidget>("waterfallDock");
    dock.raise();
    dock.show();
    ASSERT_TRUE(QTest::qWaitFor([&] { return window->waterfall().columns().size() == 1 && !window->waterfall().busy(); }));
    const engine::Waterfall& waterfall = *window->waterfall().columns().front().waterfall;
    EXPECT_EQ(waterfall.bars, (std::array<traces::TimeNs, 5>{6'000'000, 3'000'000, 0, 0, 0})) << "2 (F+B) and (p-1)(F+B)";
    EXPECT_THAT(window->waterfall().accessibleDescription().toStdString(), HasSubstr("structure of the schedule 3 ms"));
    const auto figure = [&](const char* name) {
        for (const FigureRow& row : window->figures().rows())
            if (row.name == name) return row.simulated.toStdString();
        return std::string("no such row");
    };
    EXPECT_EQ(figure("Critical path"), "0 ns");
    EXPECT_EQ(figure("Steady period"), "–") << "GPipe never goes both ways";
    window->workbench().document().startFrom(planOf(pipelineOf("1f1b", 2, 1, 8)));
    EXPECT_EQ(figure("Steady period"), "3 ms");
    EXPECT_EQ(figure("Steady bubble"), "0 %");
}

} // namespace
} // namespace stagecraft::ui
