// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the blocks of one source look like: a colour per kind of action and chunk, strokes across some, and what is written on them.
#pragma once

#include "ui/theme/theme.h"

#include "traces/store/trace.h"

#include <QString>

#include <array>
#include <vector>

namespace stagecraft::ui {

// How much of a block's label has room.
enum class LabelDetail : std::uint8_t {
    Number, // "3"
    Short,  // "F3"
    Full,   // "F3 · stage 1 · 1.2 ms"
};

class LaneStyle {
public:
    static constexpr int kShades = 4;
    static constexpr int kColours = static_cast<int>(traces::kPaintClassCount) * kShades;

    LaneStyle(const Theme& theme, const traces::TraceInfo& info);

    // Index of a colour, by what the action is and which chunk of its rank it belongs to.
    [[nodiscard]] int colourIndex(const traces::Action& action) const;
    [[nodiscard]] static int colourIndex(traces::PaintClass paint) { return static_cast<int>(paint) * kShades; }
    [[nodiscard]] QRgb colour(int index) const { return colours_[static_cast<std::size_t>(index)]; }
    [[nodiscard]] QRgb ink(int index) const { return inks_[static_cast<std::size_t>(index)]; }
    // Blocks of this colour have strokes across them, of stroke().
    [[nodiscard]] static bool hatched(int index) { return isHatched(static_cast<traces::PaintClass>(index / kShades)); }
    [[nodiscard]] QRgb stroke(int index) const { return strokes_[static_cast<std::size_t>(index)]; }

private:
    [[nodiscard]] int chunkOf(const traces::Action& action) const;

    std::array<QRgb, kColours> colours_{};
    std::array<QRgb, kColours> inks_{};
    std::array<QRgb, kColours> strokes_{};
    std::vector<int> chunkOfStage_;
};

// "3"; of a sequence in slices "2.1", slice 1 of micro-batch 2.
QString microbatchText(const traces::TraceInfo& info, traces::MicroBatch microbatch);

// Empty where this much detail says nothing (an optimizer step has no number).
QString blockLabel(const traces::Trace& trace, const traces::Slice& slice, LabelDetail detail);

} // namespace stagecraft::ui
