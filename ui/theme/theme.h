// SPDX-License-Identifier: GPL-3.0-or-later
//
// The colours of the program, as a value: a light and a dark palette with one hue per kind of action, shaded by chunk. The
// hues are told apart by people with red-green and blue-yellow blindness (tests/ui/theme holds them to it), and text on
// every one of them has a contrast of 4.5 or more. A recomputation is a forward once more: it has a pale forward's hue, and
// strokes across it (isHatched) tell it from one of another chunk.
//
//   const Theme theme = Theme::of(ThemeKind::Dark);
//   applyTheme(*qApp, theme);
//   painter.fillRect(rect, theme.block(traces::PaintClass::Forward, 0));
#pragma once

#include "traces/store/lane.h"
#include "traces/store/trace.h"

#include <QColor>
#include <QPalette>

#include <array>

class QApplication;
class QCustomPlot;

namespace stagecraft::ui {

enum class ThemeKind : std::uint8_t { Light, Dark };

// What a theme is called in settings and options: "light", "dark".
const char* themeText(ThemeKind kind);

struct Theme {
    ThemeKind kind = ThemeKind::Light;

    QColor window;     // ground of panels
    QColor base;       // ground of the timeline, plots and fields
    QColor lane;       // ground of a lane that computes: an idle rank shows it
    QColor subLane;    // ground of transfers and streams
    QColor hatch;      // strokes of a bubble, over `lane`
    QColor bubbleText; // words in a bubble
    QColor text;
    QColor mutedText;
    QColor line;       // separators and frames
    QColor grid;       // behind lanes and curves
    QColor accent;     // selection, focus, the shown part of the overview
    QColor accentText; // on accent
    QColor cursor;     // line under the mouse
    QColor arrow;      // hand-offs of the selected block
    QColor steady;     // the phase in which all ranks work
    QColor filling;    // and the phases around it
    QColor draining;
    QColor pause;      // paused time
    QColor path;       // the critical path
    QColor ghost;      // outline of a simulated block over a measured one
    QColor error;
    QColor warning;
    QColor good;
    QColor inkDark;    // the two inks for text on blocks
    QColor inkLight;
    std::array<QColor, traces::kPaintClassCount> classes;         // by PaintClass, chunk 0
    std::array<QColor, traces::kMemoryClassCount> memoryClasses;  // by MemoryClass

    static Theme of(ThemeKind kind);

    [[nodiscard]] QColor block(traces::PaintClass paint, int chunk) const; // shaded by chunk; four shades, then again
    [[nodiscard]] QColor ink(const QColor& ground) const; // for text on a block of this colour
    [[nodiscard]] QColor stroke(const QColor& block) const; // of the hatch across a block of this colour
    [[nodiscard]] QColor rank(int rank, int ranks) const; // of a rank's curve: in order from the first stage to the last
};

// The name of a colour's meaning in a legend: "forward", "backward", "input gradient", ...
const char* paintClassName(traces::PaintClass paint);

// Whether its blocks have strokes across them.
constexpr bool isHatched(traces::PaintClass paint) { return paint == traces::PaintClass::Recompute; }

// All of them, what computes first: as a legend tells them.
inline constexpr std::array<traces::PaintClass, traces::kPaintClassCount> kPaintClassOrder{
    traces::PaintClass::Forward,    traces::PaintClass::Recompute, traces::PaintClass::Backward, traces::PaintClass::InputGrad,
    traces::PaintClass::WeightGrad, traces::PaintClass::Overlap,   traces::PaintClass::Optimizer, traces::PaintClass::Transfer,
    traces::PaintClass::Copy,       traces::PaintClass::Collective, traces::PaintClass::Other};

QPalette paletteOf(const Theme& theme);
QString styleSheetOf(const Theme& theme);

// Fusion style, palette and style sheet of the whole program.
void applyTheme(QApplication& app, const Theme& theme);

// Ground, axes, grid and legend of one plot; the caller replots.
void applyTheme(QCustomPlot& plot, const Theme& theme);

} // namespace stagecraft::ui
