// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/interval_set.h"

#include <algorithm>

namespace stagecraft::traces {

IntervalSet unionOf(std::vector<Interval> intervals)
{
    std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    IntervalSet out;
    for (const Interval& each : intervals) {
        if (each.end <= each.begin) continue;
        if (!out.empty() && each.begin <= out.back().end) out.back().end = std::max(out.back().end, each.end);
        else out.push_back(each);
    }
    return out;
}

IntervalSet intersectionOf(const IntervalSet& a, const IntervalSet& b)
{
    IntervalSet out;
    for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
        const Interval both{std::max(x->begin, y->begin), std::min(x->end, y->end)};
        if (both.begin < both.end) out.push_back(both);
        x->end < y->end ? ++x : ++y;
    }
    return out;
}

IntervalSet differenceOf(const IntervalSet& a, const IntervalSet& b)
{
    IntervalSet out;
    auto cut = b.begin();
    for (const Interval& each : a) {
        TimeNs from = each.begin;
        while (cut != b.end() && cut->end <= from) ++cut;
        for (auto y = cut; y != b.end() && y->begin < each.end; ++y) {
            if (y->begin > from) out.push_back({from, y->begin});
            from = std::max(from, y->end);
        }
        if (from < each.end) out.push_back({from, each.end});
    }
    return out;
}

TimeNs lengthOf(const IntervalSet& set)
{
    TimeNs sum = 0;
    for (const Interval& each : set) sum += each.length();
    return sum;
}

} // namespace stagecraft::traces
