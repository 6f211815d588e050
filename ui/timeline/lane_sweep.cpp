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

    // ns from the left of column 0
    [[nodiscard]] double ns(TimeNs t) const { return static_cast<double>(t - origin) - first; }
    [[nodiscard]] TimeNs time(double x) const { return origin + static_cast<TimeNs>(std::ceil(first + x * nsPerColumn)); }
};

// Busy time by class in one column at a time, from left to right. Most slices lie within one column where there are many:
// for these an addition is all.
class LaneSweep::Column {
public:
    Column(LaneSweep& sweep, const Scale& scale) : sweep_(sweep), scale_(scale) {}
    Column(const Column&) = delete;
    Column& operator=(const Column&) = delete;
    ~Column() { flush(); }

    [[nodiscard]] std::size_t index() const { return index_; }

    // Goes on to the column of a moment (ns from the left of column 0) if it lies right of this one.
    void reach(double ns)
    {
        if (ns < end_) return;
        flush();
        index_ = static_cast<std::size_t>(ns * scale_.columnsPerNs);
        end_ = static_cast<double>(index_ + 1) * scale_.nsPerColumn;
    }
    // Precondition: `begin` is what reach() was last given.
    void add(double begin, double end, PaintClass paint)
    {
        double& busy = busy_[static_cast<std::size_t>(paint)];
        while (end > end_ && index_ < sweep_.columns_.size()) {
            busy += std::max(0.0, end_ - begin);
            begin = end_;
            flush();
            ++index_;
            end_ = static_cast<double>(index_ + 1) * scale_.nsPerColumn;
        }
        if (end > begin) busy += end - begin;
    }

private:
    void flush()
    {
        if (index_ >= sweep_.columns_.size()) return;
        SweepColumn sum = sweep_.columns_[index_];
        for (const std::size_t c : sweep_.classes_) {
            tint(sum, sweep_.whole_[c], static_cast<float>(busy_[c] * scale_.columnsPerNs));
            busy_[c] = 0;
        }
        sweep_.columns_[index_] = sum;
    }

    LaneSweep& sweep_;
    const Scale& scale_;
    std::size_t index_ = 0;
    double end_ = 0; // ns from the left of column 0
    std::array<double, traces::kPaintClassCount> busy_{};
};

void LaneSweep::clear(int columns)
{
    columns_.assign(static_cast<std::size_t>(columns), {});
    blocks_.clear();
}

void LaneSweep::setColours(const Lane& lane, const LaneStyle& style)
{
    classes_.clear();
    for (std::size_t c = 0; c < whole_.size(); ++c) {
        if (lane.has(static_cast<PaintClass>(c))) classes_.push_back(c);
        const QRgb colour = style.colour(LaneStyle::colourIndex(static_cast<PaintClass>(c)));
        whole_[c] = {static_cast<float>(qRed(colour)), static_cast<float>(qGreen(colour)), static_cast<float>(qBlue(colour)), 1};
    }
    const traces::Occupancy busy = lane.busy();
    sums_.clear();
    for (std::size_t sum = 0; sum < summed_.size(); ++sum)
        if (busy[sum] > 0) sums_.push_back(sum);
    // Of those that share a sum, the first that the lane has gives the colour: a lane of copies looks like copies.
    for (auto c = classes_.rbegin(); c != classes_.rend(); ++c) summed_[traces::summedWith(static_cast<PaintClass>(*c))] = whole_[*c];
}

TimeNs LaneSweep::sumBlocks(const Lane& lane, const Scale& scale, std::size_t slice, std::size_t column)
{
    const auto longest = static_cast<TimeNs>(kSmearColumns * scale.nsPerColumn);
    constexpr std::size_t kAhead = 8;
    const auto sharp = static_cast<TimeNs>(scale.nsPerColumn);
    const std::size_t blocks = lane.blockCount();
    TimeNs reached = lane.begin(slice);
    // Sums from the lane's start; a double holds them to the nanosecond up to 104 days.
    std::array<double, traces::kSummedClassCount> before{};
    const traces::Occupancy exact = lane.occupancyUntil(reached, slice);
    for (const std::size_t c : sums_) before[c] = static_cast<double>(exact[c]);

    // Reading the index costs more than the sums, as one block is far from the next in memory: of blocks shorter than a
    // column, only every second, fourth, ... is looked at. They begin at multiples of that, so that they join each other.
    std::size_t stride = 1;
    std::size_t block = slice / Lane::kBlockSlices;
    TimeNs from = lane.blockBegin(block);
    TimeNs next = from; // where the block ends; known once it is looked for
    bool known = false;
    for (; column < columns_.size() && reached < scale.end; ++column) {
        const TimeNs until = std::min(scale.time(static_cast<double>(column + 1)), scale.end);
        while (!known || next <= until) {
            block = lane.blockAt(until, block, stride);
            const auto lengthOf = [&](std::size_t each) {
                const std::size_t first = block & ~(each - 1);
                return first + each < blocks ? lane.blockBegin(first + each) - lane.blockBegin(first) : longest + 1;
            };
            while (lengthOf(stride * 2) <= sharp) stride *= 2;
            while (stride > 1 && lengthOf(stride) > sharp) stride /= 2;
            block = lane.blockAt(until, block & ~(stride - 1), stride);
            if (block + stride >= blocks) return reached; // the last block has no end to spread it to
            from = lane.blockBegin(block);
            next = lane.blockBegin(block + stride);
            known = true;
            if (block + kAhead * stride < blocks) __builtin_prefetch(&lane.busyBefore(block + kAhead * stride));
        }
        const TimeNs length = next - from;
        if (length > longest || length <= 0) break;
        const traces::Occupancy& low = lane.busyBefore(block);
        const traces::Occupancy& high = lane.busyBefore(block + stride);
        const double share = static_cast<double>(until - from) / static_cast<double>(length);
        SweepColumn sum;
        for (const std::size_t c : sums_) {
            const double after = static_cast<double>(low[c]) + static_cast<double>(high[c] - low[c]) * share;
            if (after <= before[c]) continue;
            tint(sum, summed_[c], static_cast<float>((after - before[c]) * scale.columnsPerNs));
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
    scale.begin = std::max(scale.time(0), segment.span.begin);
    scale.end = std::min(scale.time(static_cast<double>(columns_.size())), segment.span.end);
    const auto shortBlock = static_cast<TimeNs>(kSmearColumns * scale.nsPerColumn);
    const double shape = kBlockPixels * scale.nsPerColumn;
    setColours(lane, style);

    Column column(*this, scale);
    double covered = 0;          // ns from the left of column 0; done up to there
    std::size_t checked = ~0ULL; // column in which the density was looked at
    for (std::size_t i = lane.firstEndingAfter(scale.begin); i < lane.size();) {
        const Lane::Columns run = lane.columnsFrom(i);
        bool summed = false;
        for (std::size_t k = 0; k < run.size && !summed; ++k, ++i) {
            if (run.begin[k] >= scale.end) return;
            const double left = scale.ns(run.begin[k]);
            const double right = scale.ns(run.end[k]);
            if (right - left >= shape) {
                const int colour = style.colourIndex(lane.action(i));
                blocks_.push_back({static_cast<std::uint32_t>(i), colour, left * scale.columnsPerNs, right * scale.columnsPerNs});
                continue;
            }
            const double from = std::max(left, covered);
            column.reach(from);
            if (column.index() != checked && left >= covered && column.index() < columns_.size()) {
                checked = column.index();
                const std::size_t block = i / Lane::kBlockSlices + 1;
                if (block + 1 < lane.blockCount() && lane.blockBegin(block + 1) - run.begin[k] <= shortBlock) {
                    const TimeNs reached = sumBlocks(lane, scale, i, column.index());
                    if (reached > run.begin[k]) {
                        if (reached >= scale.end) return;
                        covered = scale.ns(reached);
                        checked = ~0ULL;
                        i = lane.firstEndingAfter(reached, std::max(i, lane.blockAt(reached, block - 1) * Lane::kBlockSlices));
                        summed = true;
                        break;
                    }
                }
            }
            column.add(from, right, run.paint[k]);
        }
    }
}

} // namespace stagecraft::ui
