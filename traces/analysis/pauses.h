// SPDX-License-Identifier: Apache-2.0
//
// The pauses of a trace, sorted and merged, so that a stretch of time can be asked for what of it was not paused.
#pragma once

#include "traces/store/trace.h"

#include <vector>

namespace stagecraft::traces {

class Pauses {
public:
    explicit Pauses(std::vector<Interval> pauses);

    [[nodiscard]] TimeNs running(Interval span) const; // its length without the paused time; 0 for an empty span

    // Calls visit(Interval) for each piece of `span` that lies outside the pauses, in the order of time; no empty pieces.
    template <class Visit>
    void forEachRunning(Interval span, Visit&& visit) const
    {
        TimeNs cursor = span.begin;
        for (std::size_t i = firstEndingAfter(span.begin); i < merged_.size() && merged_[i].begin < span.end; ++i) {
            if (merged_[i].begin > cursor) visit(Interval{cursor, merged_[i].begin});
            cursor = merged_[i].end;
        }
        if (cursor < span.end) visit(Interval{cursor, span.end});
    }

private:
    [[nodiscard]] std::size_t firstEndingAfter(TimeNs time) const;

    std::vector<Interval> merged_;
};

} // namespace stagecraft::traces
