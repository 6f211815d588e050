// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include "ui/theme/contrast.h"

#include <QApplication>
#include <QStyleFactory>
#include <qcustomplot.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

Theme lightTheme()
{
    Theme t;
    t.kind = ThemeKind::Light;
    t.window = QColor(0xf4f5f7);
    t.base = QColor(0xffffff);
    t.lane = QColor(0xf1f3f6);
    t.subLane = QColor(0xf7f8fa);
    t.hatch = QColor(0xdde1e7);
    t.bubbleText = QColor(0x5d6673);
    t.text = QColor(0x1d232b);
    t.mutedText = QColor(0x5a6370);
    t.line = QColor(0xd5d9e0);
    t.grid = QColor(0xe9ecf0);
    t.accent = QColor(0x1f63c4);
    t.accentText = QColor(0xffffff);
    t.cursor = QColor(0x3a4350);
    t.arrow = QColor(0x1d232b);
    t.steady = QColor(0xcfe3d6);
    t.filling = QColor(0xe9e3d0);
    t.draining = QColor(0xe4dbe6);
    t.pause = QColor(0xb9c0ca);
    t.ghost = QColor(0x1d232b);
    t.error = QColor(0xb3261e);
    t.warning = QColor(0x8a5a00);
    t.good = QColor(0x1f7a4d);
    t.inkDark = QColor(0x14181e);
    t.inkLight = QColor(0xffffff);
    t.classes = {QColor(0x3274c4), QColor(0xeba434), QColor(0xdb6a34), QColor(0x37a98a),
                 QColor(0xb87ec4), QColor(0x6cb5cf), QColor(0x716d9c), QColor(0x97a0ac)};
    t.memoryClasses = {QColor(0x6a7bb5), QColor(0x37a98a), QColor(0xb9a6cf), QColor(0xeba434), QColor(0xb4bcc7)};
    return t;
}

Theme darkTheme()
{
    Theme t;
    t.kind = ThemeKind::Dark;
    t.window = QColor(0x1b1f25);
    t.base = QColor(0x15181d);
    t.lane = QColor(0x20252c);
    t.subLane = QColor(0x1a1e24);
    t.hatch = QColor(0x313843);
    t.bubbleText = QColor(0x9aa4b1);
    t.text = QColor(0xe4e8ed);
    t.mutedText = QColor(0x9ba5b2);
    t.line = QColor(0x343b45);
    t.grid = QColor(0x272c34);
    t.accent = QColor(0x6ea8ff);
    t.accentText = QColor(0x0e1116);
    t.cursor = QColor(0xc3cad3);
    t.arrow = QColor(0xf2f4f7);
    t.steady = QColor(0x26402f);
    t.filling = QColor(0x403a27);
    t.draining = QColor(0x3a2f40);
    t.pause = QColor(0x49515d);
    t.ghost = QColor(0xf2f4f7);
    t.error = QColor(0xff8a80);
    t.warning = QColor(0xf2c14e);
    t.good = QColor(0x6fcf97);
    t.inkDark = QColor(0x0e1116);
    t.inkLight = QColor(0xffffff);
    t.classes = {QColor(0x5b9be6), QColor(0xf0b24a), QColor(0xe57e4a), QColor(0x4cc0a0),
                 QColor(0xdfa6dd), QColor(0x5fa5bd), QColor(0x928dc2), QColor(0x8b95a2)};
    t.memoryClasses = {QColor(0x7d90d0), QColor(0x4cc0a0), QColor(0xa593c2), QColor(0xf0b24a), QColor(0x76808c)};
    return t;
}

} // namespace

const char* themeText(ThemeKind kind) { return kind == ThemeKind::Light ? "light" : "dark"; }

Theme Theme::of(ThemeKind kind) { return kind == ThemeKind::Light ? lightTheme() : darkTheme(); }

QColor Theme::block(traces::PaintClass paint, int chunk) const
{
    // Lighter first: the base colours are about in the middle, and light shades keep dark ink readable.
    static constexpr std::array<double, 4> kTowardsWhite{0.0, 0.34, 0.17, 0.5};
    const QColor& base = classes[static_cast<std::size_t>(paint)];
    return mixed(base, Qt::white, kTowardsWhite[static_cast<std::size_t>(std::max(chunk, 0)) % kTowardsWhite.size()]);
}

QColor Theme::ink(const QColor& ground) const { return readableInk(ground, inkDark, inkLight); }

QColor Theme::rank(int rank, int ranks) const
{
    // One walk through lightness and hue (blue, teal, ochre, red): the order of stages can be read from it without hue.
    static constexpr std::array<QRgb, 4> kLight{0x233a7d, 0x1d7f8c, 0xb7862b, 0xd0563a};
    static constexpr std::array<QRgb, 4> kDark{0x7a8ff0, 0x4fc3c8, 0xe0bd62, 0xf58d6e};
    const auto& stops = kind == ThemeKind::Light ? kLight : kDark;
    const double place = ranks <= 1 ? 0 : 3.0 * std::clamp(rank, 0, ranks - 1) / (ranks - 1);
    const auto lower = std::min<std::size_t>(static_cast<std::size_t>(place), 2);
    return mixed(QColor(stops[lower]), QColor(stops[lower + 1]), place - static_cast<double>(lower));
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
QDockWidget::title { background: %2; padding: 6px 8px; border-bottom: 1px solid %1; }
QMainWindow::separator { background: %1; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: %3; }
QGroupBox { border: none; border-top: 1px solid %1; margin-top: 18px; padding-top: 8px; font-weight: 600; }
QGroupBox::title { subcontrol-origin: margin; left: 0px; color: %4; }
QStatusBar { border-top: 1px solid %1; }
QStatusBar::item { border: none; }
QToolBar { border: none; border-bottom: 1px solid %1; spacing: 4px; padding: 3px; }
QHeaderView::section { background: %2; color: %4; border: none; border-bottom: 1px solid %1; padding: 4px 6px; }
QScrollArea { border: none; }
)");
    return sheet.arg(t.line.name(), t.window.name(), t.accent.name(), t.mutedText.name(),
                     paletteOf(t).color(QPalette::ToolTipBase).name());
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
