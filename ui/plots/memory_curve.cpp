// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/memory_curve.h"

#include <algorithm>

namespace stagecraft::ui {

std::size_t MemoryCurve::update(const traces::Trace& trace)
{
    struct Change {
        traces::TimeNs time;
        std::size_t memory;
        traces::Bytes bytes;
    };
    std::vector<Change> changes;
    for (int attempt = 0; attempt < 2; ++attempt) {
        changes.clear();
        for (const traces::MemorySeries& series : trace.memory()) {
            const auto memory = static_cast<std::size_t>(series.memory);
            if (series.rank != rank_ || !(classes_ & (1U << memory))) continue;
            if (read_[memory] > series.time.size()) read_[memory] = 0; // another trace took its place
            for (std::size_t i = read_[memory]; i < series.time.size(); ++i)
                changes.push_back({series.time[i], memory, series.value[i]});
        }
        std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
        if (changes.empty() || points_.empty() || changes.front().time >= points_.back().time) break;
        // A class brought something older than what is summed already: sum anew.
        read_ = {};
        current_ = {};
        points_.clear();
        highest_ = 0;
    }
    std::size_t kept = points_.size();
    for (const Change& change : changes) {
        ++read_[change.memory];
        current_[change.memory] = change.bytes;
        traces::Bytes sum = 0;
        for (const traces::Bytes bytes : current_) sum += bytes;
        if (!points_.empty() && points_.back().time == change.time) {
            points_.back().bytes = sum;
            kept = std::min(kept, points_.size() - 1);
        } else {
            points_.push_back({change.time, sum});
        }
    }
    if (kept <= highest_) highest_ = 0;
    for (std::size_t i = highest_ == 0 ? 0 : kept; i < points_.size(); ++i)
        if (points_[i].bytes > points_[highest_].bytes) highest_ = i;
    return kept;
}

traces::Bytes MemoryCurve::at(traces::TimeNs t) const
{
    const auto after = std::upper_bound(points_.begin(), points_.end(), t,
                                        [](traces::TimeNs time, const MemoryPoint& point) { return time < point.time; });
    return after == points_.begin() ? 0 : (after - 1)->bytes;
}

MemoryPoint MemoryCurve::highest() const { return points_.empty() ? MemoryPoint{} : points_[highest_]; }

} // namespace stagecraft::ui
