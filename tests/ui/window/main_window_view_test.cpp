// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which traces the window shows how, and what is selected in them.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"

#include <QApplication>
#include <QComboBox>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QSignalSpy>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

TEST_F(MainWindowTest, SwitchesTheViewFromTheBarAndTheMenu)
{
    runUntil("hello", SessionState::Finished);
    window->actions().views->actions()[2]->trigger(); // simulated only
    EXPECT_EQ(the<QComboBox>("view").currentText(), "simulated only");
    EXPECT_EQ(window->workbench().scene().sourceCount(), 1);
    auto& box = the<QComboBox>("view");
    box.setCurrentIndex(0);
    emit box.activated(0);
    EXPECT_TRUE(window->actions().views->actions()[0]->isChecked());
    EXPECT_EQ(window->workbench().scene().sourceCount(), 2);
}

TEST_F(MainWindowTest, NamesTheViewOfATraceAfterWhatItIs)
{
    openPlan("hello", "hello");
    const traces::Trace simulated = *window->workbench().simulation().simulation().trace;
    const auto open = [&](traces::TraceLabel label) {
        traces::Trace trace = simulated;
        trace.info.label = label;
        ASSERT_TRUE(window->workbench().showTrace(std::move(trace), "some.strace").ok());
    };
    const auto expectNamed = [&](const QString& bar, const QString& menu) {
        const QAction* only = window->actions().views->actions()[static_cast<int>(ViewKind::OtherOnly)];
        EXPECT_EQ(the<QComboBox>("view").currentText(), bar);
        EXPECT_EQ(QString(only->text()).remove('&'), menu);
        const QString word = bar.section(' ', 0, 0);
        for (const ViewKind kind : {ViewKind::Stacked, ViewKind::Overlaid, ViewKind::OtherOnly}) {
            const QAction* action = window->actions().views->actions()[static_cast<int>(kind)];
            EXPECT_TRUE(action->toolTip().contains(word)) << action->toolTip().toStdString();
        }
        EXPECT_TRUE(the<QComboBox>("view").toolTip().contains(word)) << the<QComboBox>("view").toolTip().toStdString();
    };
    open(traces::TraceLabel::Measured);
    expectNamed("measured only", "Measured only");
    open(traces::TraceLabel::Emulated);
    expectNamed("emulated only", "Emulated only");
    open(traces::TraceLabel::Imported);
    expectNamed("imported only", "Imported only");
    open(traces::TraceLabel::Simulated);
    expectNamed("opened only", "Opened only");
    window->workbench().setView(ViewKind::Stacked);
    EXPECT_EQ(the<QLabel>("traceLabel").text(), "simulated + simulated (opened)");
}

// From each view to each other one: what listens to the scene meanwhile must find sources that are there.
TEST_F(MainWindowTest, ChangesFromEveryViewToEveryOther)
{
    runUntil("hello", SessionState::Finished);
    for (const ViewKind from : {ViewKind::Stacked, ViewKind::Overlaid, ViewKind::SimulatedOnly, ViewKind::OtherOnly}) {
        for (const ViewKind to : {ViewKind::Stacked, ViewKind::Overlaid, ViewKind::SimulatedOnly, ViewKind::OtherOnly}) {
            press(window->actions().views->actions()[static_cast<int>(from)]);
            QSignalSpy changes(&window->workbench().scene(), &TimelineScene::sourcesChanged);
            press(window->actions().views->actions()[static_cast<int>(to)]);
            EXPECT_EQ(changes.size(), from == to ? 0 : 1) << "one change, told once";
            const bool both = to == ViewKind::Stacked || to == ViewKind::Overlaid;
            EXPECT_EQ(window->workbench().scene().sourceCount(), both ? 2 : 1);
            EXPECT_EQ(window->workbench().scene().arrangement(), to == ViewKind::Overlaid ? Arrangement::Overlaid : Arrangement::Stacked);
        }
        press(window->actions().views->actions()[static_cast<int>(from)]);
        press(window->actions().useMeasured);
        EXPECT_EQ(window->workbench().view(), ViewKind::Overlaid);
    }
}

// The measured block under the mouse is selected; the views change by their keys while the mouse stays there. What is selected,
// hovered and told must be of the sources that are shown then.
TEST_F(MainWindowTest, KeepsSelectionAndHoverSoundThroughEveryView)
{
    TimelineWidget& timeline = window->timeline();
    const TimelineScene& scene = window->workbench().scene();
    const auto expectSound = [&](const TimelineItem& item, const char* what) {
        if (item.none()) return;
        ASSERT_LT(item.source, scene.sourceCount()) << what;
        EXPECT_TRUE(scene.shownSpan(item)) << what;
    };
    const auto pointAtAll = [&](QPointF pos) {
        QMouseEvent move(QEvent::MouseMove, pos, timeline.mapToGlobal(pos), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
        QApplication::sendEvent(&timeline, &move);
        QHelpEvent help(QEvent::ToolTip, pos.toPoint(), timeline.mapToGlobal(pos.toPoint()));
        QApplication::sendEvent(&timeline, &help);
        window->grab();
        expectSound(timeline.hovered(), "hovered");
        expectSound(timeline.selection(), "selected");
        EXPECT_EQ(the<QLabel>("selectionTitle").text().contains("Nothing"), timeline.selection().none());
    };
    const auto visit = [&](ViewKind from) {
        press(window->actions().views->actions()[static_cast<int>(from)]);
        const int source = *window->workbench().otherSource();
        const Row* row = timeline.laneLayout().rowOf(source, traces::LaneId{0});
        ASSERT_TRUE(row);
        const TimelineItem block{.kind = TimelineItem::Kind::Slice, .source = source, .slice = {traces::LaneId{0}, 1}};
        const auto span = scene.shownSpan(block);
        ASSERT_TRUE(span);
        timeline.select(block);
        const TimelinePainter painter(timeline.theme(), timeline.font());
        const int scroll = timeline.findChild<QScrollBar*>()->value();
        const QPointF pos(timeline.mapping().x(span->begin + span->length() / 2), painter.rulerHeight() + row->y + row->height / 2 - scroll);
        pointAtAll(pos);
        QTest::mouseClick(&timeline, Qt::LeftButton, {}, pos.toPoint());
        ASSERT_EQ(timeline.selection().source, source) << "a measured block is selected";
        for (const Qt::Key key : {Qt::Key_1, Qt::Key_2, Qt::Key_3, Qt::Key_2, Qt::Key_4, Qt::Key_3, Qt::Key_1}) {
            QTest::keyClick(window.get(), key, Qt::ControlModifier);
            ASSERT_EQ(static_cast<int>(window->workbench().view()), key - Qt::Key_1) << "the key arrives";
            pointAtAll(pos);
            for (const Qt::Key arrow : {Qt::Key_Right, Qt::Key_Down, Qt::Key_Left, Qt::Key_Up, Qt::Key_BracketRight, Qt::Key_BracketLeft}) {
                QTest::keyClick(&timeline, arrow);
                pointAtAll(pos);
            }
            QTest::keyClick(&timeline, Qt::Key_Right, Qt::ShiftModifier);
            QTest::keyClick(&timeline, Qt::Key_M);
            pointAtAll(pos);
        }
    };
    const auto visitAll = [&](const char* what) {
        SCOPED_TRACE(what);
        for (const ViewKind from : {ViewKind::OtherOnly, ViewKind::Overlaid, ViewKind::Stacked}) visit(from);
    };
    window->resize(1280, 800);
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    runUntil("hold", SessionState::Running);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window->workbench().run().trace()->sliceCount() > 4; }));
    visitAll("a run that goes on");
    press(window->actions().stop);
    ASSERT_TRUE(waitFor(SessionState::Stopped));
    visitAll("a run that has ended");
    for (const traces::TraceLabel label : {traces::TraceLabel::Imported, traces::TraceLabel::Simulated}) {
        traces::Trace opened = *window->workbench().run().trace();
        opened.info.label = label;
        ASSERT_TRUE(window->workbench().showTrace(std::move(opened), "opened.strace").ok());
        visitAll("an opened trace, one after another");
    }
}

TEST_F(MainWindowTest, ShowsTheSelectedBlock)
{
    openPlan("hello", "hello");
    window->timeline().setFocus();
    window->timeline().selectNext();
    EXPECT_TRUE(the<QLabel>("selectionTitle").text().contains("0F0")) << the<QLabel>("selectionTitle").text().toStdString();
    window->timeline().clearSelection();
    EXPECT_TRUE(the<QLabel>("selectionTitle").text().contains("Nothing"));
}

TEST_F(MainWindowTest, SearchesTheTimelineFromAnywhere)
{
    openPlan("hello", "hello");
    auto& field = the<QLineEdit>("searchField");
    EXPECT_FALSE(field.isVisible());
    press(window->actions().find);
    EXPECT_TRUE(field.isVisible());
    QTest::keyClicks(&field, "0F1");
    press(window->actions().findNext);
    EXPECT_EQ(the<QLabel>("searchResult").text(), "1 of 1");
    ASSERT_EQ(window->timeline().selection().kind, TimelineItem::Kind::Slice);
    press(window->actions().findPrevious);
    EXPECT_EQ(the<QLabel>("searchResult").text(), "1 of 1");
}

TEST_F(MainWindowTest, SaysThatTheFiguresOfALongStepAreBeingCalculated)
{
    openPlan("hello", "hello");
    traces::Trace trace;
    trace.info.label = traces::TraceLabel::Imported;
    const traces::LaneId lane = trace.addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    for (int i = 0; i < static_cast<int>(StepAnalyses::kDirectSlices) + 1; ++i)
        trace.append(lane, {.begin = 2000LL * i, .end = 2000LL * i + 1000, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{i}), .step = {}, .text = {}});
    trace.addStep({.step = traces::Step{0}, .span = trace.extent(), .loss = {}});
    ASSERT_TRUE(window->workbench().showTrace(std::move(trace), "long.strace").ok());
    auto& note = the<QLabel>("figuresNote");
    EXPECT_FALSE(note.isHidden());
    EXPECT_TRUE(note.text().contains("calculating")) << note.text().toStdString();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window->workbench().scene().calculating(); }));
    EXPECT_FALSE(note.text().contains("calculating"));
    EXPECT_TRUE(window->workbench().scene().figures(0, traces::Step{0}));
    const auto& rows = window->figures().rows();
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const FigureRow& row) { return !row.other.isEmpty(); }));
}

} // namespace
} // namespace stagecraft::ui
