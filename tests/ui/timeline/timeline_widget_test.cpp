// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the timeline keeps and shows as its sources change.
#include "tests/ui/timeline/timeline_widget_fixture.h"

#include "ui/timeline/ruler_painter.h"

#include <QSignalSpy>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::LaneId;
using traces::SliceRef;

TEST_F(TimelineWidgetTest, FindsTheSelectedBlockInTheNextSimulation)
{
    click(at(5, LaneId{0}));
    QSignalSpy changed(&widget_, &TimelineWidget::selectionChanged);
    QSignalSpy grew(&widget_, &TimelineWidget::selectionGrew);
    scene_.setSources({{twoRanks({.unit = {2 * kMs}})}});
    EXPECT_EQ(selected(), (SliceRef{LaneId{0}, 2}));
    EXPECT_EQ(grew.count(), 1);
    EXPECT_TRUE(widget_.accessibleDescription().contains("4 ms")) << widget_.accessibleDescription().toStdString();
    scene_.dataArrived();
    EXPECT_EQ(grew.count(), 2);
    EXPECT_EQ(changed.count(), 0);
}

TEST_F(TimelineWidgetTest, ClearsABubbleThatIsGone)
{
    click(at(3, LaneId{0}));
    ASSERT_EQ(widget_.selection().kind, TimelineItem::Kind::Gap);
    const auto busy = std::make_shared<traces::Trace>();
    const LaneId lane = busy->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = {}});
    for (int i = 0; i < 9; ++i)
        busy->append(lane, {.begin = i * kMs, .end = (i + 1) * kMs, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{i}), .step = {}, .text = {}});
    QSignalSpy changed(&widget_, &TimelineWidget::selectionChanged);
    scene_.setSources({{busy}});
    EXPECT_TRUE(widget_.selection().none());
    EXPECT_EQ(changed.count(), 1);
}

TEST_F(TimelineWidgetTest, TellsTheStepUnderTheRuler)
{
    const QString text = rulerText(scene_, 5 * kMs);
    for (const char* part : {"step 0", "fill", "1 ms", "drain", "2 ms", "bubble", "33.33 %"}) EXPECT_TRUE(text.contains(part)) << part;
    EXPECT_TRUE(rulerText(scene_, 50 * kMs).isEmpty());
}

TEST_F(TimelineWidgetTest, KeepsARankFoldedWhenItsSourceTakesAnotherPlace)
{
    const auto measured = twoRanks({.label = traces::TraceLabel::Measured});
    scene_.setSources({{twoRanks()}, {measured}});
    click({30, lanesTop() + widget_.laneLayout().rowOf(1, LaneId{0})->y + 5});
    EXPECT_EQ(widget_.laneLayout().rowOf(1, LaneId{2}), nullptr);
    scene_.setSources({{measured}});
    EXPECT_EQ(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
    scene_.setSources({{twoRanks()}});
    EXPECT_NE(widget_.laneLayout().rowOf(0, LaneId{2}), nullptr);
}

TEST_F(TimelineWidgetTest, ShowsTheCursorOfAnotherView)
{
    const QImage before = widget_.grab().toImage();
    widget_.setHoverTime(3 * kMs);
    const QImage after = widget_.grab().toImage();
    const int x = static_cast<int>(widget_.mapping().x(3 * kMs));
    EXPECT_NE(before.pixel(x, 380), after.pixel(x, 380));
    EXPECT_EQ(before.pixel(x + 20, 380), after.pixel(x + 20, 380));
}

TEST_F(TimelineWidgetTest, RingsWhenFocused)
{
    widget_.activateWindow();
    widget_.setFocus();
    QApplication::processEvents();
    ASSERT_TRUE(widget_.hasFocus());
    EXPECT_EQ(widget_.grab().toImage().pixelColor(1, 200), widget_.theme().accent);
}

TEST_F(TimelineWidgetTest, DropsASelectionThatIsGone)
{
    click(at(8, LaneId{0}));
    scene_.setSources({{std::make_shared<traces::Trace>()}});
    EXPECT_TRUE(widget_.selection().none());
    widget_.grab();
}

TEST_F(TimelineWidgetTest, TellsWhatToDoWhenThereIsNothing)
{
    scene_.setSources({});
    widget_.setEmptyText("No pipeline yet", "Choose a plan on the left.");
    const QImage image = widget_.grab().toImage();
    int ink = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) ink += image.pixelColor(x, y) == widget_.theme().text;
    EXPECT_GT(ink, 50);
    for (const Qt::Key k : {Qt::Key_W, Qt::Key_F, Qt::Key_Right, Qt::Key_BracketLeft, Qt::Key_M, Qt::Key_L, Qt::Key_End}) key(k);
    EXPECT_TRUE(widget_.selection().none());
}

TEST_F(TimelineWidgetTest, NamesItselfAndItsKeys)
{
    EXPECT_FALSE(widget_.accessibleName().isEmpty());
    click(at(5, LaneId{0}));
    EXPECT_TRUE(widget_.accessibleDescription().contains("0B0"));
    for (const auto& help : TimelineWidget::keyHelp()) {
        EXPECT_FALSE(help.keys.isEmpty());
        EXPECT_FALSE(help.what.isEmpty());
    }
}

TEST_F(TimelineWidgetTest, SurvivesASourceThatShrinks)
{
    scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs, kMs, kMs}})}});
    send(QEvent::MouseMove, at(5, LaneId{1}), Qt::NoButton, Qt::NoButton);
    widget_.grab();
    scene_.setArrangement(Arrangement::Overlaid);
    widget_.grab();
    scene_.setSources({{twoRanks()}});
    widget_.grab();
    scene_.setSources({});
    widget_.grab();
    EXPECT_TRUE(widget_.hovered().none());
}

} // namespace
} // namespace stagecraft::ui
