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
            if (series.rank != rank() || !(classes_ & (1U << memory))) continue;
            if (read_[memory] > series.time.size()) read_[memory] = 0; // another trace took its place
            for (std::size_t i = read_[memory]; i < series.time.size(); ++i)
                changes.push_back({series.time[i], memory, series.value[i]});
        }
        std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
        if (changes.empty() || points().empty() || changes.front().time >= points().back().time) break;
        // A class brought something older than what is summed already: sum anew.
        read_ = {};
        current_ = {};
        clear();
    }
    std::size_t kept = points().size();
    for (const Change& change : changes) {
        ++read_[change.memory];
        current_[change.memory] = change.bytes;
        traces::Bytes sum = 0;
        for (const traces::Bytes bytes : current_) sum += bytes;
        add({change.time, sum}, kept);
    }
    findHighest(kept);
    return kept;
}

} // namespace stagecraft::ui
