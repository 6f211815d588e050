// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_sweep.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using traces::Lane;
using traces::Occupancy;
using traces::TimeNs;

void tint(SweepColumn& column, QRgb colour, float share)
{
    column.red += share * static_cast<float>(qRed(colour));
    column.green += share * static_cast<float>(qGreen(colour));
    column.blue += share * static_cast<float>(qBlue(colour));
    column.cover += share;
}

} // namespace

void LaneSweep::clear(int columns)
{
    columns_.assign(static_cast<std::size_t>(columns), {});
    blocks_.clear();
}

void LaneSweep::fill(double left, double right, QRgb colour)
{
    const double end = std::min(right, static_cast<double>(columns_.size()));
    for (double x = std::max(left, 0.0); x < end;) {
        const auto column = static_cast<std::size_t>(x);
        const double next = std::min(end, static_cast<double>(column + 1));
        tint(columns_[column], colour, static_cast<float>(next - x));
        x = next;
    }
}

void LaneSweep::run(const Lane& lane, const Segment& segment, const TimeMapping& map, const LaneStyle& style)
{
    // In the lane's own time: x = (t - origin - range.begin) / nsPerColumn.
    const TimeNs origin = map.range().origin - segment.shift;
    const double nsPerColumn = map.nsPerPixel();
    if (nsPerColumn <= 0 || columns_.empty()) return;
    const double perNs = 1 / nsPerColumn;
    const double first = map.range().begin;
    const auto x = [&](TimeNs t) { return (static_cast<double>(t - origin) - first) * perNs; };
    const auto edge = [&](double column) { return origin + static_cast<TimeNs>(std::ceil(first + column * nsPerColumn)); };

    const auto columns = static_cast<double>(columns_.size());
    const TimeNs begin = std::max(edge(0), segment.span.begin);
    const TimeNs end = std::min(edge(columns), segment.span.end);
    const std::size_t size = lane.size();

    std::size_t known = size; // slice up to whose begin `before` counts
    Occupancy before{};
    for (std::size_t i = lane.firstEndingAfter(begin); i < size;) {
        const TimeNs from = lane.begin(i);
        if (from >= end) break;
        const double left = x(from);
        const TimeNs to = lane.end(i);
        const double right = x(to);
        if (right - left >= kBlockPixels) {
            blocks_.push_back({static_cast<std::uint32_t>(i), style.colourIndex(lane.action(i)), left, right});
            ++i;
            continue;
        }
        if (left >= 0 && i + kDenseSlices < size) {
            const double column = std::floor(left);
            const TimeNs columnEnd = edge(column + 1);
            if (lane.end(i + kDenseSlices) <= columnEnd) {
                // Whole slices only: what reaches into the next column is counted with it.
                const std::size_t next = lane.firstEndingAfter(columnEnd, i + kDenseSlices);
                const TimeNs until = next < size ? lane.begin(next) : lane.lastEnd();
                if (known != i) before = lane.occupancyUntil(from, i);
                const Occupancy after = lane.occupancyUntil(until, next);
                SweepColumn& target = columns_[static_cast<std::size_t>(std::min(column, columns - 1))];
                for (std::size_t c = 0; c < after.size(); ++c) {
                    const TimeNs busy = after[c] - before[c];
                    if (busy > 0)
                        tint(target, style.colour(LaneStyle::colourIndex(static_cast<traces::PaintClass>(c))),
                             static_cast<float>(static_cast<double>(busy) * perNs));
                }
                before = after;
                known = next;
                i = next;
                continue;
            }
        }
        fill(left, right, style.colour(style.colourIndex(lane.action(i))));
        ++i;
    }
}

} // namespace stagecraft::ui
