// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include "ui/theme/contrast.h"

#include <QApplication>
#include <QStyleFactory>
#include <qcustomplot.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

struct Pair {
    QRgb light;
    QRgb dark;
    [[nodiscard]] QColor of(ThemeKind kind) const { return kind == ThemeKind::Light ? QColor(light) : QColor(dark); }
};

struct Entry {
    QColor Theme::*colour;
    Pair pair;
};

constexpr Entry kColours[] = {
    {&Theme::window, {0xf4f5f7, 0x1b1f25}},
    {&Theme::base, {0xffffff, 0x15181d}},
    {&Theme::lane, {0xf1f3f6, 0x20252c}},
    {&Theme::subLane, {0xf7f8fa, 0x1a1e24}},
    {&Theme::hatch, {0xb7bec9, 0x47505d}},
    {&Theme::bubbleText, {0x5d6673, 0x9aa4b1}},
    {&Theme::text, {0x1d232b, 0xe4e8ed}},
    {&Theme::mutedText, {0x5a6370, 0x9ba5b2}},
    {&Theme::line, {0xd5d9e0, 0x343b45}},
    {&Theme::grid, {0xe9ecf0, 0x272c34}},
    {&Theme::accent, {0x1f63c4, 0x6ea8ff}},
    {&Theme::accentText, {0xffffff, 0x0e1116}},
    {&Theme::cursor, {0x3a4350, 0xc3cad3}},
    {&Theme::arrow, {0x1d232b, 0xf2f4f7}},
    {&Theme::steady, {0xcfe3d6, 0x26402f}},
    {&Theme::filling, {0xe9e3d0, 0x403a27}},
    {&Theme::draining, {0xe4dbe6, 0x3a2f40}},
    {&Theme::pause, {0xb9c0ca, 0x49515d}},
    {&Theme::path, {0xa3124a, 0xff5c8d}},
    {&Theme::ghost, {0x1d232b, 0xf2f4f7}},
    {&Theme::error, {0xb3261e, 0xff8a80}},
    {&Theme::warning, {0x8a5a00, 0xf2c14e}},
    {&Theme::good, {0x1f7a4d, 0x6fcf97}},
    {&Theme::inkDark, {0x14181e, 0x0e1116}},
    {&Theme::inkLight, {0xffffff, 0xffffff}},
};

// By PaintClass.
constexpr std::array<Pair, traces::kPaintClassCount> kClasses{{
    {0x3274c4, 0x5b9be6},
    {0xeba434, 0xf0b24a},
    {0xdb6a34, 0xe57e4a},
    {0x37a98a, 0x4cc0a0},
    {0xb87ec4, 0xdfa6dd},
    {0x6cb5cf, 0x5fa5bd},
    {0x716d9c, 0x928dc2},
    {0x97a0ac, 0x8b95a2},
    {0x9db3e0, 0xaac6ee}, // recompute: a forward again, and hatched
    {0x1f5560, 0x2f7f74}, // copies
    {0x7a4a30, 0xa87650}, // collectives
}};

// By MemoryClass.
constexpr std::array<Pair, traces::kMemoryClassCount> kMemoryClasses{{
    {0x6a7bb5, 0x7d90d0},
    {0x37a98a, 0x4cc0a0},
    {0xb9a6cf, 0xa593c2},
    {0xeba434, 0xf0b24a},
    {0xb4bcc7, 0x76808c},
    {0x9aa8d8, 0x5a69a0},
    {0x6cb5cf, 0x5fa5bd},
    {0xdb6a34, 0xe57e4a},
}};

} // namespace

const char* themeText(ThemeKind kind) { return kind == ThemeKind::Light ? "light" : "dark"; }

Theme Theme::of(ThemeKind kind)
{
    Theme theme;
    theme.kind = kind;
    for (const Entry& entry : kColours) theme.*entry.colour = entry.pair.of(kind);
    const auto of = [kind](const Pair& pair) { return pair.of(kind); };
    std::transform(kClasses.begin(), kClasses.end(), theme.classes.begin(), of);
    std::transform(kMemoryClasses.begin(), kMemoryClasses.end(), theme.memoryClasses.begin(), of);
    return theme;
}

QColor Theme::block(traces::PaintClass paint, int chunk) const
{
    // Lighter first: the base colours are about in the middle, and light shades keep dark ink readable.
    static constexpr std::array<double, 4> kTowardsWhite{0.0, 0.34, 0.17, 0.5};
    const QColor& base = classes[static_cast<std::size_t>(paint)];
    return mixed(base, Qt::white, kTowardsWhite[static_cast<std::size_t>(std::max(chunk, 0)) % kTowardsWhite.size()]);
}

QColor Theme::ink(const QColor& ground) const { return readableInk(ground, inkDark, inkLight); }

QColor Theme::stroke(const QColor& block) const
{
    // Away from the ink, so that what is written across reads no worse; a light block gets dark strokes that leave it readable.
    const QColor away = mixed(block, ink(block) == inkDark ? Qt::white : Qt::black, 0.6);
    return contrastRatio(away, block) >= 1.35 ? away : mixed(block, inkDark, 0.3);
}

QColor Theme::rank(int rank, int ranks) const
{
    // One walk through lightness and hue (blue, teal, ochre, red): the order of stages can be read from it without hue.
    static constexpr std::array<Pair, 4> kStops{{{0x233a7d, 0x7a8ff0}, {0x1d7f8c, 0x4fc3c8}, {0xb7862b, 0xe0bd62}, {0xd0563a, 0xf58d6e}}};
    const double place = ranks <= 1 ? 0 : 3.0 * std::clamp(rank, 0, ranks - 1) / (ranks - 1);
    const auto lower = std::min<std::size_t>(static_cast<std::size_t>(place), 2);
    return mixed(kStops[lower].of(kind), kStops[lower + 1].of(kind), place - static_cast<double>(lower));
}

const char* paintClassName(traces::PaintClass paint)
{
    switch (paint) {
    case traces::PaintClass::Forward: return "forward";
    case traces::PaintClass::Backward: return "backward";
    case traces::PaintClass::InputGrad: return "input gradient";
    case traces::PaintClass::WeightGrad: return "weight gradient";
    case traces::PaintClass::Overlap: return "forward and backward";
    case traces::PaintClass::Transfer: return "transfer";
    case traces::PaintClass::Optimizer: return "optimizer";
    case traces::PaintClass::Other: return "other";
    case traces::PaintClass::Recompute: return "recompute";
    case traces::PaintClass::Copy: return "offload and reload";
    case traces::PaintClass::Collective: return "collective";
    }
    return "";
}

QPalette paletteOf(const Theme& t)
{
    QPalette p;
    p.setColor(QPalette::Window, t.window);
    p.setColor(QPalette::WindowText, t.text);
    p.setColor(QPalette::Base, t.base);
    p.setColor(QPalette::AlternateBase, t.lane);
    p.setColor(QPalette::Text, t.text);
    p.setColor(QPalette::PlaceholderText, t.mutedText);
    p.setColor(QPalette::Button, mixed(t.window, t.base, 0.5));
    p.setColor(QPalette::ButtonText, t.text);
    p.setColor(QPalette::BrightText, t.error);
    p.setColor(QPalette::Highlight, t.accent);
    p.setColor(QPalette::HighlightedText, t.accentText);
    p.setColor(QPalette::Link, t.accent);
    p.setColor(QPalette::LinkVisited, t.accent);
    p.setColor(QPalette::ToolTipBase, t.kind == ThemeKind::Light ? QColor(0x1d232b) : QColor(0x2a3039));
    p.setColor(QPalette::ToolTipText, QColor(0xf2f4f7));
    p.setColor(QPalette::Light, mixed(t.window, Qt::white, 0.3));
    p.setColor(QPalette::Midlight, mixed(t.window, Qt::white, 0.15));
    p.setColor(QPalette::Mid, t.line);
    p.setColor(QPalette::Dark, mixed(t.line, Qt::black, 0.2));
    p.setColor(QPalette::Shadow, mixed(t.line, Qt::black, 0.5));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        p.setColor(QPalette::Disabled, role, mixed(t.mutedText, t.window, 0.35));
    p.setColor(QPalette::Disabled, QPalette::Highlight, t.line);
    return p;
}

QString styleSheetOf(const Theme& t)
{
    const QString sheet = QStringLiteral(R"(
QToolTip { background: %5; color: #f2f4f7; border: 1px solid %1; padding: 4px 6px; }
QDockWidget::title { background: %2; padding: 6px 8px 4px 8px; border-bottom: 1px solid %1; }
QMainWindow::separator { background: %1; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: %3; }
QGroupBox { border: none; border-top: 1px solid %1; margin-top: 18px; padding-top: 8px; font-weight: 600; }
QGroupBox::title { subcontrol-origin: margin; left: 0px; color: %4; }
QStatusBar { border-top: 1px solid %1; }
QStatusBar::item { border: none; }
QToolBar { border: none; border-bottom: 1px solid %1; spacing: 4px; padding: 3px; }
QHeaderView::section { background: %2; color: %4; border: none; border-bottom: 1px solid %1; padding: 4px 6px; }
QScrollArea { border: none; }
QCheckBox::indicator, QListView::indicator { width: 12px; height: 12px; border: 1px solid %4; border-radius: 2px; background: %6; }
QCheckBox::indicator:checked, QListView::indicator:checked { border-color: %3; background: %3; }
QCheckBox::indicator:focus { border-color: %3; }
)");
    return sheet.arg(t.line.name(), t.window.name(), t.accent.name(), t.mutedText.name(),
                     paletteOf(t).color(QPalette::ToolTipBase).name(), t.base.name());
}

void applyTheme(QApplication& app, const Theme& theme)
{
    app.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    app.setPalette(paletteOf(theme));
    app.setStyleSheet(styleSheetOf(theme));
}

void applyTheme(QCustomPlot& plot, const Theme& theme)
{
    plot.setBackground(QBrush(theme.base));
    for (QCPAxisRect* rect : plot.axisRects()) {
        rect->setBackground(QBrush(theme.base));
        for (QCPAxis* axis : rect->axes()) {
            axis->setBasePen(QPen(theme.line));
            axis->setTickPen(QPen(theme.line));
            axis->setSubTickPen(Qt::NoPen);
            axis->setTickLabelColor(theme.mutedText);
            axis->setLabelColor(theme.mutedText);
            axis->grid()->setPen(QPen(theme.grid));
            axis->grid()->setZeroLinePen(QPen(theme.line));
            axis->grid()->setSubGridVisible(false);
        }
    }
    if (plot.legend) {
        QColor ground = theme.base;
        ground.setAlpha(225);
        plot.legend->setBrush(ground);
        plot.legend->setBorderPen(Qt::NoPen);
        plot.legend->setTextColor(theme.text);
    }
}

} // namespace stagecraft::ui
