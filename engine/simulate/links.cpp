// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/links.h"

#include <algorithm>

namespace stagecraft::engine {

Links::Links(const CostTable& costs, int ranks) : costs_(costs), laneFree_(static_cast<std::size_t>(ranks), 0) {}

Links::Hop Links::hop(Rank from, Rank to, Bytes bytes) const
{
    if (costs_.machine.nodeOf(from.value) != costs_.machine.nodeOf(to.value)) return {costs_.machine.between.latency, costs_.machine.between.occupied(bytes)};
    if (bytes > 0 && costs_.inside.bytesPerSecond > 0) return {costs_.inside.latency, costs_.inside.occupied(bytes)};
    return {costs_.inside.latency, costs_.transfer - costs_.inside.latency};
}

traces::Interval Links::send(Rank from, Rank to, Bytes bytes, TimeNs at)
{
    const Hop way = hop(from, to, bytes);
    TimeNs begin = at;
    const bool oneByOne = costs_.machine.transfers == TransferPlace::CopyLane;
    if (oneByOne) begin = std::max(begin, laneFree_[index(from)]);
    const bool inside = costs_.machine.nodeOf(from.value) == costs_.machine.nodeOf(to.value);
    const auto ends = std::pair{from.value, to.value};
    if (costs_.machine.sharedLinks) {
        TimeNs& free = wayFree_[inside ? ends : std::pair{-1 - costs_.machine.nodeOf(from.value), -1 - costs_.machine.nodeOf(to.value)}];
        begin = std::max(begin, free);
        free = begin + way.occupied;
    }
    TimeNs end = begin + way.latency + way.occupied;
    if (oneByOne) laneFree_[index(from)] = end;
    if (costs_.machine.send == SendMode::Channel) {
        TimeNs& last = arrived_[ends];
        end = last = std::max(end, last);
    }
    return {begin, end};
}

} // namespace stagecraft::engine
