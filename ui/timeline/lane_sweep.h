// SPDX-License-Identifier: GPL-3.0-or-later
//
// One lane seen through a view, column by column: how much of each column which colour fills, and the blocks that are wide
// enough to be shapes of their own. The cost goes with the number of columns, not with the number of slices: where columns
// are wider than a few slices, their busy time comes from the lane's index, whose blocks of slices are spread evenly over
// the at most kSmearColumns columns that they touch.
//
//   LaneSweep sweep;
//   sweep.clear(1920);
//   sweep.run(lane, segment, map, style);
//   sweep.columns()[17].cover == 0.4f      // 40 % busy
#pragma once

#include "ui/timeline/lane_style.h"
#include "ui/timeline/time_mapping.h"
#include "ui/timeline/timeline_scene.h"

#include "traces/store/lane.h"

#include <QRgb>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace stagecraft::ui {

struct SweepColumn {
    float red = 0; // 0 .. 255, weighed by the share of the column
    float green = 0;
    float blue = 0;
    float cover = 0; // busy share, blocks left out
};

// What is busy for so short a time that nobody would see it is painted as if it were for this share of the column: a lane with little on it
// is not an empty one.
inline constexpr float kLeastSeen = 0.35F;
// Of one that is busy for any time.
[[nodiscard]] inline QRgb mixedOn(QRgb ground, const SweepColumn& column)
{
    const float seen = std::clamp(column.cover, kLeastSeen, 1.0F); // rounding may count a little more than all of it
    const float scale = seen / column.cover;
    const auto channel = [&](float busy, int idle) { return static_cast<int>(busy * scale + (1 - seen) * static_cast<float>(idle) + 0.5F); };
    return qRgb(channel(column.red, qRed(ground)), channel(column.green, qGreen(ground)), channel(column.blue, qBlue(ground)));
}

struct SweepBlock {
    std::uint32_t slice = 0;
    int colour = 0; // LaneStyle's index
    double left = 0; // not cut to the view
    double right = 0;
};

class LaneSweep {
public:
    static constexpr double kBlockPixels = 3;      // narrower slices only tint their columns
    static constexpr double kSmearColumns = 2.5;

    // `map` runs over the columns: its left is 0 and its width `columns`. Adds to what earlier segments left.
    void clear(int columns);
    void run(const traces::Lane& lane, const Segment& segment, const TimeMapping& map, const LaneStyle& style);

    [[nodiscard]] std::span<const SweepColumn> columns() const { return columns_; }
    [[nodiscard]] const std::vector<SweepBlock>& blocks() const { return blocks_; }

private:
    struct Scale; // time <-> column
    class Column; // the column that slices are added to

    void setColours(const traces::Lane& lane, const LaneStyle& style);
    // Columns from `column` on by the lane's index, as far as its blocks are short enough; the time that it came to.
    traces::TimeNs sumBlocks(const traces::Lane& lane, const Scale& scale, std::size_t slice, std::size_t column);

    std::vector<SweepColumn> columns_;
    std::vector<SweepBlock> blocks_;
    std::array<SweepColumn, traces::kPaintClassCount> whole_{}; // a column full of one class
    std::vector<std::size_t> classes_;                          // that the lane has
    std::vector<std::size_t> sums_;                             // of the lane's index, that are not 0
    std::array<SweepColumn, traces::kSummedClassCount> summed_{}; // a column full of one sum
};

} // namespace stagecraft::ui
