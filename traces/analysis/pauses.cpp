// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/pauses.h"

#include <algorithm>

namespace stagecraft::traces {

Pauses::Pauses(std::vector<Interval> pauses)
{
    std::erase_if(pauses, [](const Interval& pause) { return pause.end <= pause.begin; });
    std::sort(pauses.begin(), pauses.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (const Interval& pause : pauses) {
        if (!merged_.empty() && pause.begin <= merged_.back().end)
            merged_.back().end = std::max(merged_.back().end, pause.end);
        else merged_.push_back(pause);
    }
}

TimeNs Pauses::running(Interval span) const
{
    TimeNs sum = 0;
    forEachRunning(span, [&](Interval piece) { sum += piece.length(); });
    return sum;
}

std::size_t Pauses::firstEndingAfter(TimeNs time) const
{
    const auto found = std::upper_bound(merged_.begin(), merged_.end(), time,
                                        [](TimeNs t, const Interval& pause) { return t < pause.end; });
    return static_cast<std::size_t>(found - merged_.begin());
}

} // namespace stagecraft::traces
