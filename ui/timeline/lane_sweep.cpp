// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_sweep.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using traces::Lane;
using traces::PaintClass;
using traces::TimeNs;

void tint(SweepColumn& column, const SweepColumn& whole, float share)
{
    column.red += share * whole.red;
    column.green += share * whole.green;
    column.blue += share * whole.blue;
    column.cover += share * whole.cover;
}

} // namespace

// In the lane's own time; the origin is an integer, so that only distances from it become double.
struct LaneSweep::Scale {
    TimeNs origin = 0;
    double first = 0; // ns after origin, at column 0
    double nsPerColumn = 1;
    double columnsPerNs = 1;
    TimeNs begin = 0; // what is to be seen
    TimeNs end = 0;

    [[nodiscard]] double x(TimeNs t) const { return (static_cast<double>(t - origin) - first) * columnsPerNs; }
    [[nodiscard]] TimeNs time(double x) const { return origin + static_cast<TimeNs>(std::ceil(first + x * nsPerColumn)); }
};

void LaneSweep::clear(int columns)
{
    columns_.assign(static_cast<std::size_t>(columns), {});
    blocks_.clear();
}

void LaneSweep::setColours(const LaneStyle& style)
{
    for (std::size_t c = 0; c < whole_.size(); ++c) {
        const QRgb colour = style.colour(LaneStyle::colourIndex(static_cast<PaintClass>(c)));
        whole_[c] = {static_cast<float>(qRed(colour)), static_cast<float>(qGreen(colour)), static_cast<float>(qBlue(colour)), 1};
    }
}

void LaneSweep::fill(double left, double right, const SweepColumn& whole)
{
    const double end = std::min(right, static_cast<double>(columns_.size()));
    for (double x = std::max(left, 0.0); x < end;) {
        const auto column = static_cast<std::size_t>(x);
        const double next = std::min(end, static_cast<double>(column + 1));
        tint(columns_[column], whole, static_cast<float>(next - x));
        x = next;
    }
}

TimeNs LaneSweep::sumBlocks(const Lane& lane, const Scale& scale, std::size_t slice, std::size_t column)
{
    const auto longest = static_cast<TimeNs>(kSmearColumns * scale.nsPerColumn);
    const std::size_t blocks = lane.blockCount();
    TimeNs reached = lane.begin(slice);
    traces::Occupancy before = lane.occupancyUntil(reached, slice);
    std::size_t block = slice / Lane::kBlockSlices;
    for (; column < columns_.size() && reached < scale.end; ++column) {
        const TimeNs until = std::min(scale.time(static_cast<double>(column + 1)), scale.end);
        block = lane.blockAt(until, block);
        if (block + 1 >= blocks) break; // the last block has no end to spread it to
        const TimeNs from = lane.blockBegin(block);
        const TimeNs length = lane.blockBegin(block + 1) - from;
        if (length > longest || length <= 0) break;
        const traces::Occupancy& low = lane.busyBefore(block);
        const traces::Occupancy& high = lane.busyBefore(block + 1);
        const double share = static_cast<double>(until - from) / static_cast<double>(length);
        SweepColumn sum;
        for (std::size_t c = 0; c < whole_.size(); ++c) {
            const TimeNs busy = high[c] - low[c];
            const TimeNs after = low[c] + static_cast<TimeNs>(static_cast<double>(busy) * share);
            if (after <= before[c]) continue;
            tint(sum, whole_[c], static_cast<float>(static_cast<double>(after - before[c]) * scale.columnsPerNs));
            before[c] = after;
        }
        tint(columns_[column], sum, 1);
        reached = until;
    }
    return reached;
}

void LaneSweep::run(const Lane& lane, const Segment& segment, const TimeMapping& map, const LaneStyle& style)
{
    if (map.nsPerPixel() <= 0 || columns_.empty() || lane.empty()) return;
    Scale scale;
    scale.origin = map.range().origin - segment.shift;
    scale.first = map.range().begin;
    scale.nsPerColumn = map.nsPerPixel();
    scale.columnsPerNs = 1 / scale.nsPerColumn;
    const auto columns = static_cast<double>(columns_.size());
    scale.begin = std::max(scale.time(0), segment.span.begin);
    scale.end = std::min(scale.time(columns), segment.span.end);
    const auto shortBlock = static_cast<TimeNs>(kSmearColumns * scale.nsPerColumn);
    setColours(style);

    double covered = 0;          // columns left of it are done
    std::size_t checked = ~0ULL; // column in which the density was looked at
    for (std::size_t i = lane.firstEndingAfter(scale.begin); i < lane.size();) {
        const Lane::Columns run = lane.columnsFrom(i);
        bool summed = false;
        for (std::size_t k = 0; k < run.size && !summed; ++k, ++i) {
            if (run.begin[k] >= scale.end) return;
            const double left = scale.x(run.begin[k]);
            const double right = scale.x(run.end[k]);
            if (right - left >= kBlockPixels) {
                blocks_.push_back({static_cast<std::uint32_t>(i), style.colourIndex(lane.action(i)), left, right});
                continue;
            }
            const double from = std::max(left, covered);
            const auto column = static_cast<std::size_t>(from);
            if (column != checked && left >= covered && column < columns_.size()) {
                checked = column;
                const std::size_t block = i / Lane::kBlockSlices + 1;
                if (block + 1 < lane.blockCount() && lane.blockBegin(block + 1) - run.begin[k] <= shortBlock) {
                    const TimeNs reached = sumBlocks(lane, scale, i, column);
                    if (reached > run.begin[k]) {
                        if (reached >= scale.end) return;
                        covered = scale.x(reached);
                        checked = ~0ULL;
                        i = lane.firstEndingAfter(reached, std::max(i, lane.blockAt(reached, block - 1) * Lane::kBlockSlices));
                        summed = true;
                        break;
                    }
                }
            }
            const SweepColumn& whole = whole_[static_cast<std::size_t>(run.paint[k])];
            if (right <= static_cast<double>(column + 1) && column < columns_.size()) {
                if (right > from) tint(columns_[column], whole, static_cast<float>(right - from));
            } else {
                fill(from, right, whole);
            }
        }
    }
}

} // namespace stagecraft::ui
