// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/contrast.h"
#include "ui/theme/theme.h"

#include <QApplication>
#include <QCheckBox>
#include <QDockWidget>
#include <QMainWindow>
#include <QStyle>
#include <QStyleOptionDockWidget>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

namespace stagecraft::ui {
namespace {

using traces::PaintClass;

class EveryTheme : public ::testing::TestWithParam<ThemeKind> {
protected:
    Theme theme_ = Theme::of(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Themes, EveryTheme, ::testing::Values(ThemeKind::Light, ThemeKind::Dark),
                         [](const auto& info) { return info.param == ThemeKind::Light ? "Light" : "Dark"; });

using Rgb = std::array<double, 3>;

double toLinear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }

// What a person without one kind of cones sees: the matrices of Machado, Oliveira and Fernandes (2009) for full severity,
// applied to linear light.
using Matrix = std::array<Rgb, 3>;
constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kProtanopia{{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kTritanopia{{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

Rgb labOf(const QColor& colour, const Matrix& eye)
{
    const Rgb light{toLinear(colour.redF()), toLinear(colour.greenF()), toLinear(colour.blueF())};
    Rgb seen{};
    for (std::size_t i = 0; i < 3; ++i)
        seen[i] = std::clamp(eye[i][0] * light[0] + eye[i][1] * light[1] + eye[i][2] * light[2], 0.0, 1.0);
    const double x = (0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047;
    const double y = 0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2];
    const double z = (0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883;
    const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
    return {116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))};
}

double difference(const QColor& a, const QColor& b, const Matrix& eye)
{
    const Rgb la = labOf(a, eye);
    const Rgb lb = labOf(b, eye);
    return std::hypot(la[0] - lb[0], la[1] - lb[1], la[2] - lb[2]);
}

TEST(Contrast, IsThatOfWcag)
{
    EXPECT_NEAR(contrastRatio(Qt::black, Qt::white), 21.0, 1e-9);
    EXPECT_NEAR(contrastRatio(Qt::white, Qt::white), 1.0, 1e-9);
    EXPECT_NEAR(contrastRatio(QColor(0x777777), Qt::white), 4.48, 0.005); // WCAG's example of a grey that just fails
}

TEST_P(EveryTheme, WritesReadablyOnEveryBlock)
{
    for (std::size_t c = 0; c < traces::kPaintClassCount; ++c)
        for (int chunk = 0; chunk < 4; ++chunk) {
            const QColor block = theme_.block(static_cast<PaintClass>(c), chunk);
            EXPECT_GE(contrastRatio(block, theme_.ink(block)), 4.5)
                << paintClassName(static_cast<PaintClass>(c)) << ", chunk " << chunk << ", " << block.name().toStdString();
        }
}

TEST_P(EveryTheme, WritesReadablyOnEveryGround)
{
    const auto readable = [](const QColor& text, const QColor& ground, const char* what) {
        EXPECT_GE(contrastRatio(text, ground), 4.5) << what;
    };
    readable(theme_.text, theme_.window, "text on window");
    readable(theme_.text, theme_.base, "text on base");
    readable(theme_.mutedText, theme_.window, "muted text on window");
    readable(theme_.mutedText, theme_.base, "muted text on base");
    readable(theme_.bubbleText, theme_.lane, "text in a bubble");
    readable(theme_.accentText, theme_.accent, "text on accent");
    readable(theme_.text, theme_.steady, "steady phase");
    readable(theme_.text, theme_.filling, "filling phase");
    readable(theme_.text, theme_.draining, "draining phase");
    readable(theme_.error, theme_.window, "error");
    readable(theme_.warning, theme_.window, "warning");
    readable(theme_.good, theme_.window, "good news");
}

TEST_P(EveryTheme, KeepsBlocksApartFromAnIdleLane)
{
    // 1.4.11 of WCAG asks 3 for parts of a graphic; the edge between block and lane carries the message here.
    for (const PaintClass paint : {PaintClass::Forward, PaintClass::Backward, PaintClass::InputGrad, PaintClass::WeightGrad})
        EXPECT_GE(difference(theme_.block(paint, 0), theme_.lane, kNormal), 35) << paintClassName(paint);
}

TEST_P(EveryTheme, HatchesBubblesVisibly)
{
    EXPECT_GE(contrastRatio(theme_.hatch, theme_.lane), 1.6);
}

TEST_P(EveryTheme, KeepsKindsOfActionsApartForColourBlindEyes)
{
    const std::array<PaintClass, 5> kinds{PaintClass::Forward, PaintClass::Backward, PaintClass::InputGrad,
                                          PaintClass::WeightGrad, PaintClass::Overlap};
    const std::array<std::pair<const char*, const Matrix*>, 4> eyes{
        {{"normal", &kNormal}, {"protanopia", &kProtanopia}, {"deuteranopia", &kDeuteranopia}, {"tritanopia", &kTritanopia}}};
    for (const auto& [name, eye] : eyes)
        for (std::size_t a = 0; a < kinds.size(); ++a)
            for (std::size_t b = a + 1; b < kinds.size(); ++b)
                EXPECT_GE(difference(theme_.block(kinds[a], 0), theme_.block(kinds[b], 0), *eye), 14)
                    << name << ": " << paintClassName(kinds[a]) << " and " << paintClassName(kinds[b]);
}

TEST_P(EveryTheme, KeepsCopiesAndCollectivesApartFromAllElse)
{
    for (const Matrix* eye : {&kNormal, &kProtanopia, &kDeuteranopia, &kTritanopia})
        for (const PaintClass paint : {PaintClass::Copy, PaintClass::Collective})
            for (const PaintClass other : kPaintClassOrder) {
                if (other == paint) continue;
                EXPECT_GE(difference(theme_.block(paint, 0), theme_.block(other, 0), *eye), 14)
                    << paintClassName(paint) << " and " << paintClassName(other);
            }
}

// Its hue is that of a pale forward, near which a shade of a chunk, a transfer and a pair come for some eyes.
TEST_P(EveryTheme, TellsARecomputationByItsStrokes)
{
    for (const PaintClass paint : kPaintClassOrder) EXPECT_EQ(isHatched(paint), paint == PaintClass::Recompute) << paintClassName(paint);
    for (const Matrix* eye : {&kNormal, &kProtanopia, &kDeuteranopia, &kTritanopia})
        EXPECT_GE(difference(theme_.block(PaintClass::Recompute, 0), theme_.block(PaintClass::Forward, 0), *eye), 14);
    for (int chunk = 0; chunk < 4; ++chunk) {
        const QColor block = theme_.block(PaintClass::Recompute, chunk);
        EXPECT_GE(contrastRatio(theme_.stroke(block), block), 1.35) << chunk;
        EXPECT_GE(contrastRatio(theme_.stroke(block), theme_.ink(block)), 4.5) << chunk;
    }
}

TEST(PaintClassOrder, HasEachClassOnce)
{
    std::set<PaintClass> seen(kPaintClassOrder.begin(), kPaintClassOrder.end());
    EXPECT_EQ(seen.size(), traces::kPaintClassCount);
    std::set<std::string> names;
    for (const PaintClass paint : seen) names.insert(paintClassName(paint));
    EXPECT_EQ(names.size(), traces::kPaintClassCount);
}

TEST_P(EveryTheme, ShadesNeighbouringChunksDifferently)
{
    for (int chunk = 0; chunk < 3; ++chunk)
        EXPECT_GE(difference(theme_.block(PaintClass::Forward, chunk), theme_.block(PaintClass::Forward, chunk + 1), kNormal), 5);
}

TEST_P(EveryTheme, OrdersTheColoursOfRanks)
{
    EXPECT_EQ(theme_.rank(0, 1), theme_.rank(0, 4));
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_GE(difference(theme_.rank(rank, 4), theme_.rank(rank + 1, 4), kNormal), 20);
}

// Qt makes the title as high as the text and twice the padding above it; the line below comes out of that.
TEST_P(EveryTheme, LeavesRoomForTheWholeTitleOfADock)
{
    applyTheme(*qApp, theme_);
    QMainWindow window;
    QDockWidget dock("gjpqy");
    window.addDockWidget(Qt::LeftDockWidgetArea, &dock);
    window.show();
    QStyleOptionDockWidget option;
    option.initFrom(&dock);
    option.title = dock.windowTitle();
    const int margin = dock.style()->pixelMetric(QStyle::PM_DockWidgetTitleMargin, &option, &dock);
    option.rect = QRect(0, 0, 200, dock.fontMetrics().height() + 2 * margin);
    EXPECT_GE(dock.style()->subElementRect(QStyle::SE_DockWidgetTitleBarText, &option, &dock).height(), dock.fontMetrics().height());
}

// Fusion draws its frame darker than the window, which a dark window swallows.
TEST_P(EveryTheme, ShowsWhereABoxIsTicked)
{
    applyTheme(*qApp, theme_);
    QCheckBox box;
    box.resize(box.sizeHint());
    const QImage off = box.grab().toImage();
    const auto clearest = [&](const QImage& image) {
        double most = 1;
        for (int x = 0; x < image.width(); ++x) most = std::max(most, contrastRatio(image.pixelColor(x, image.height() / 2), theme_.window));
        return most;
    };
    EXPECT_GE(clearest(off), 3.0);
    box.setChecked(true);
    const QImage on = box.grab().toImage();
    EXPECT_GE(clearest(on), 3.0);
    EXPECT_GE(contrastRatio(on.pixelColor(on.width() / 2, on.height() / 2), off.pixelColor(off.width() / 2, off.height() / 2)), 3.0);
}

TEST_P(EveryTheme, DressesTheApplication)
{
    applyTheme(*qApp, theme_);
    EXPECT_EQ(qApp->palette().color(QPalette::Base), theme_.base);
    EXPECT_EQ(qApp->palette().color(QPalette::WindowText), theme_.text);
    EXPECT_FALSE(qApp->styleSheet().contains(QLatin1Char('%'))) << "a colour is missing in the style sheet";
}

} // namespace
} // namespace stagecraft::ui
