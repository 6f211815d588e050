// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/overview_strip.h"

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QWheelEvent>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;

// All of 9 ms with its margins on 1000 pixels from x = 100.
class Overview : public ::testing::Test {
protected:
    Overview() : strip_(scene_)
    {
        scene_.setSources({{twoRanks()}});
        strip_.setMargins(100, 20);
        strip_.resize(1120, 46);
        strip_.show();
    }
    double x(double ms) const { return 100 + 1000 * (ms + 9 * 0.015) / (9 * 1.03); }
    void send(QEvent::Type type, double at, Qt::MouseButton button, Qt::MouseButtons held)
    {
        const QPointF pos(at, 20);
        QMouseEvent event(type, pos, strip_.mapToGlobal(pos), button, held, Qt::NoModifier);
        QApplication::sendEvent(&strip_, &event);
    }
    void drag(double from, double to, Qt::MouseButton button = Qt::LeftButton)
    {
        send(QEvent::MouseButtonPress, from, button, button);
        send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, button);
        send(QEvent::MouseMove, to, Qt::NoButton, button);
        send(QEvent::MouseButtonRelease, to, button, Qt::NoButton);
    }
    void expectRange(double first, double last)
    {
        EXPECT_NEAR(static_cast<double>(scene_.axis().range().first()) / kMs, first, 0.02);
        EXPECT_NEAR(static_cast<double>(scene_.axis().range().last()) / kMs, last, 0.02);
    }
    TimelineScene scene_;
    OverviewStrip strip_;
};

TEST_F(Overview, MovesTheViewWhenTheFrameIsDragged)
{
    QSignalSpy moved(&scene_.axis(), &TimeAxis::moved);
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    drag(x(3), x(5));
    expectRange(4, 6);
    EXPECT_GT(moved.count(), 0);
}

TEST_F(Overview, ZoomsWhenAnEdgeIsDragged)
{
    scene_.axis().setRange({2 * kMs, 4 * kMs});
    QSignalSpy moved(&scene_.axis(), &TimeAxis::moved);
    drag(x(4), x(6));
    expectRange(2, 6);
    EXPECT_GT(moved.count(), 0); // ends following
    drag(x(2), x(5));
    expectRange(5, 6);
}

TEST_F(Overview, GoesWhereItIsClicked)
{
    scene_.axis().setRange({0, 2 * kMs});
    send(QEvent::MouseButtonPress, x(7), Qt::LeftButton, Qt::LeftButton);
    send(QEvent::MouseButtonRelease, x(7), Qt::LeftButton, Qt::NoButton);
    expectRange(6, 8);
}

TEST_F(Overview, ChoosesANewPart)
{
    drag(x(3), x(6), Qt::RightButton);
    expectRange(3, 6);
}

TEST_F(Overview, ZoomsByWheel)
{
    const QPointF pos(x(5), 20);
    QWheelEvent event(pos, strip_.mapToGlobal(pos), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&strip_, &event);
    EXPECT_FALSE(scene_.axis().showsAll());
    EXPECT_LT(scene_.axis().range().first(), 5 * kMs);
    EXPECT_GT(scene_.axis().range().last(), 5 * kMs);
}

TEST_F(Overview, ShowsEveryRankAndVeilsTheRest)
{
    const Theme theme = Theme::of(ThemeKind::Light);
    const auto pixel = [&](double ms, int y) { return strip_.grab().toImage().pixelColor(static_cast<int>(x(ms)), y); };
    EXPECT_EQ(pixel(0.5, 14), theme.block(traces::PaintClass::Forward, 0));
    EXPECT_EQ(pixel(3, 32), theme.block(traces::PaintClass::Backward, 0));
    scene_.axis().setRange({6 * kMs, 8 * kMs});
    EXPECT_NE(pixel(0.5, 14), theme.block(traces::PaintClass::Forward, 0)); // pale beside the frame
    EXPECT_EQ(pixel(7.5, 14), theme.block(traces::PaintClass::Backward, 0));
}

TEST_F(Overview, IgnoresTheMouseWhenEmpty)
{
    scene_.setSources({});
    drag(300, 500);
    strip_.grab();
    EXPECT_FALSE(scene_.axis().canGoBack());
}

} // namespace
} // namespace stagecraft::ui
