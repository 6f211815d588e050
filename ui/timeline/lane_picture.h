// SPDX-License-Identifier: GPL-3.0-or-later
//
// One visible lane, ready to be drawn by LaneCanvas (pixels) or LaneShapes (vectors).
#pragma once

#include "ui/timeline/lane_sweep.h"

#include "traces/analysis/figures.h"

#include <QString>

#include <optional>
#include <string>
#include <vector>

namespace stagecraft::ui {

// A gap wide enough to be told from mere background.
struct Bubble {
    double left = 0; // in the sweep's columns, cut to the view
    double right = 0;
    const traces::Gap* gap = nullptr;   // in which a rank idles,
    const std::string* cause = nullptr; // or why a device's stream does,
    std::optional<traces::Rank> waitsFor = {}; // or in which a kernel of NCCL waits for another rank's
    traces::TimeNs length = 0;
};

struct LanePicture {
    const traces::Trace* trace = nullptr;
    const traces::Lane* lane = nullptr;
    const LaneStyle* style = nullptr;
    const LaneSweep* sweep = nullptr;
    const std::vector<Bubble>* bubbles = nullptr;
    const LaneSweep* ghost = nullptr; // blocks to outline, or null
    double top = 0;                   // below the lanes' upper edge, in columns' units; may be negative
    double height = 0;
    bool sub = false;                 // a thin lane: no labels, quieter ground
};

// The widest part of a bubble in which no block is drawn, for its text; empty where there is none. A rank that idles may stand in a
// receipt, which is a block of its own. Blocks lie in the order of time.
struct Stretch {
    double left = 0;
    double right = 0;
};
Stretch freePart(const Bubble& bubble, const std::vector<SweepBlock>& blocks);

inline constexpr double kBubblePixels = 6; // narrower gaps are plain ground

// "waiting for stage 1"
QString causeText(traces::GapCause cause, traces::Stage stage);
inline QString causeText(const traces::Gap& gap) { return causeText(gap.cause, gap.stage); }
QString causeText(const Bubble& bubble);
// "stage 1", where there is little room
QString shortCauseText(traces::GapCause cause, traces::Stage stage);

} // namespace stagecraft::ui
