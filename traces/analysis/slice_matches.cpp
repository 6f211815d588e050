// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/slice_matches.h"

#include <algorithm>
#include <bit>

namespace stagecraft::traces {
namespace {

constexpr std::size_t kBetweenStops = 65'536; // slices, after which a stop is asked for: well below a millisecond

// Number of the lane's slices that begin before `time`.
std::size_t beginningBefore(const Lane& lane, TimeNs time, std::size_t size)
{
    std::size_t low = 0;
    std::size_t high = size;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (lane.begin(middle) < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Number of slices of lane `id` whose place is before that of `slice`.
std::size_t placedBefore(const Trace& trace, LaneId id, SliceRef slice, std::size_t size)
{
    if (id == slice.lane) return std::min<std::size_t>(slice.index, size);
    const TimeNs begin = trace.lane(slice.lane).begin(slice.index);
    return beginningBefore(trace.lane(id), id < slice.lane ? begin + 1 : begin,
                           size); // of one begin, lower lanes come first
}

// Whether a name matches, found out once for each of a trace's texts.
class NameMatches {
public:
    NameMatches(const Trace& trace, const LaneQuery& query) : trace_(trace), query_(query) {}

    bool matches(TextId text)
    {
        if (known_.empty()) known_.assign(trace_.textCount(), Unknown);
        std::uint8_t& known = known_[index(text)];
        if (known == Unknown) known = query_.matchesName(trace_.text(text)) ? Match : Other;
        return known == Match;
    }

private:
    enum : std::uint8_t { Unknown, Match, Other };

    const Trace& trace_;
    const LaneQuery& query_;
    std::vector<std::uint8_t> known_;
};

// The first of the lanes' matches from where `border` says of each lane, and the last one before it.
template <class Border>
std::optional<SliceRef> firstFrom(const Trace& trace, const std::vector<BitRow>& lanes, const Border& border)
{
    std::optional<SliceRef> first;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        const LaneId id{l};
        const std::size_t hit = lanes[l].firstFrom(border(id));
        if (hit != BitRow::kNone && (!first || trace.lane(id).begin(hit) < trace.slice(*first).begin))
            first = SliceRef{id, static_cast<std::uint32_t>(hit)};
    }
    return first;
}
template <class Border>
std::optional<SliceRef> lastBefore(const Trace& trace, const std::vector<BitRow>& lanes, const Border& border)
{
    std::optional<SliceRef> last;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        const LaneId id{l};
        const std::size_t hit = lanes[l].lastBefore(border(id));
        if (hit != BitRow::kNone && (!last || trace.lane(id).begin(hit) >= trace.slice(*last).begin))
            last = SliceRef{id, static_cast<std::uint32_t>(hit)};
    }
    return last;
}

} // namespace

std::size_t BitRow::countBefore(std::size_t i) const
{
    if (i >= size_) return count_;
    const std::uint64_t lower = words_[i / kWordBits] & ((std::uint64_t{1} << (i % kWordBits)) - 1);
    return before_[i / kWordBits] + static_cast<std::size_t>(std::popcount(lower));
}

std::size_t BitRow::find(std::size_t nth) const
{
    const auto word = std::upper_bound(before_.begin(), before_.end(), nth) - before_.begin() - 1;
    std::uint64_t bits = words_[static_cast<std::size_t>(word)];
    for (std::size_t skip = nth - before_[static_cast<std::size_t>(word)]; skip > 0; --skip) bits &= bits - 1;
    return static_cast<std::size_t>(word) * kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t BitRow::firstFrom(std::size_t i) const
{
    const std::size_t nth = countBefore(i);
    return nth < count_ ? find(nth) : kNone;
}

std::size_t BitRow::lastBefore(std::size_t i) const
{
    const std::size_t nth = countBefore(i);
    return nth > 0 ? find(nth - 1) : kNone;
}

bool SliceMatches::extend(const Trace& trace, const std::stop_token& stop)
{
    if (lanes_.size() < trace.laneCount()) lanes_.resize(trace.laneCount());
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        BitRow& found = lanes_[l];
        if (found.size() == lane.size()) continue;
        const LaneQuery query = query_.on(lane.info());
        NameMatches names(trace, query);
        while (found.size() < lane.size()) {
            if (stop.stop_requested()) return false;
            const std::size_t end = std::min(lane.size(), found.size() + kBetweenStops);
            for (std::size_t i = found.size(); i < end; ++i) {
                const Action& action = lane.action(i);
                if (!query.any()) found.add(false);
                else if (action.kind() == ActionKind::None)
                    found.add(query.covers(lane.step(i)) && names.matches(lane.text(i)));
                else found.add(query.covers(lane.step(i)) && query.matchesAction(action));
            }
        }
    }
    return true;
}

std::size_t SliceMatches::seen() const
{
    std::size_t seen = 0;
    for (const BitRow& lane : lanes_) seen += lane.size();
    return seen;
}

std::size_t SliceMatches::count() const
{
    std::size_t count = 0;
    for (const BitRow& lane : lanes_) count += lane.count();
    return count;
}

bool SliceMatches::contains(SliceRef slice) const
{
    return index(slice.lane) < lanes_.size() && lanes_[index(slice.lane)].at(slice.index);
}

std::size_t SliceMatches::countBefore(const Trace& trace, SliceRef slice) const
{
    std::size_t count = 0;
    for (std::size_t l = 0; l < lanes_.size(); ++l)
        count += lanes_[l].countBefore(placedBefore(trace, LaneId{l}, slice, lanes_[l].size()));
    return count;
}

std::optional<SliceRef> SliceMatches::after(const Trace& trace, SliceRef slice) const
{
    return firstFrom(trace, lanes_, [&](LaneId id) {
        return placedBefore(trace, id, slice, lanes_[index(id)].size()) + (id == slice.lane ? 1 : 0);
    });
}

std::optional<SliceRef> SliceMatches::before(const Trace& trace, SliceRef slice) const
{
    return lastBefore(trace, lanes_, [&](LaneId id) { return placedBefore(trace, id, slice, lanes_[index(id)].size()); });
}

std::optional<SliceRef> SliceMatches::from(const Trace& trace, TimeNs time) const
{
    return firstFrom(trace, lanes_,
                     [&](LaneId id) { return beginningBefore(trace.lane(id), time, lanes_[index(id)].size()); });
}

std::optional<SliceRef> SliceMatches::until(const Trace& trace, TimeNs time) const
{
    return lastBefore(trace, lanes_,
                      [&](LaneId id) { return beginningBefore(trace.lane(id), time, lanes_[index(id)].size()); });
}

} // namespace stagecraft::traces
