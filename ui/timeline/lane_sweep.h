// SPDX-License-Identifier: GPL-3.0-or-later
//
// One lane seen through a view, column by column: how much of each column which colour fills, and the blocks that are wide
// enough to be shapes of their own. The cost goes with the number of columns, not with the number of slices: where many
// slices share a column, their busy time is taken from the lane's index in one step.
//
//   LaneSweep sweep;
//   sweep.run(lane, segment, map, 1920, style);
//   sweep.columns()[17].cover == 0.4f      // 40 % busy
#pragma once

#include "ui/timeline/lane_style.h"
#include "ui/timeline/time_mapping.h"
#include "ui/timeline/timeline_scene.h"

#include "traces/store/lane.h"

#include <span>
#include <vector>

namespace stagecraft::ui {

struct SweepColumn {
    float red = 0; // 0 .. 255, weighed by the share of the column
    float green = 0;
    float blue = 0;
    float cover = 0; // busy share, blocks left out
};

struct SweepBlock {
    std::uint32_t slice = 0;
    int colour = 0; // LaneStyle's index
    double left = 0; // not cut to the view
    double right = 0;
};

class LaneSweep {
public:
    static constexpr double kBlockPixels = 3;      // narrower slices only tint their columns
    static constexpr std::size_t kDenseSlices = 8; // more in one column are summed by the index

    // `map` runs over the columns: its left is 0 and its width `columns`. Adds to what earlier segments left.
    void clear(int columns);
    void run(const traces::Lane& lane, const Segment& segment, const TimeMapping& map, const LaneStyle& style);

    [[nodiscard]] std::span<const SweepColumn> columns() const { return columns_; }
    [[nodiscard]] const std::vector<SweepBlock>& blocks() const { return blocks_; }

private:
    void fill(double left, double right, QRgb colour);

    std::vector<SweepColumn> columns_;
    std::vector<SweepBlock> blocks_;
};

} // namespace stagecraft::ui
