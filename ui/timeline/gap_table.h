// SPDX-License-Identifier: GPL-3.0-or-later
//
// The idle intervals of one step, by rank and time, for views that paint and point at them again and again. A step may have
// millions: everything here is a search.
#pragma once

#include "traces/analysis/figures.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace stagecraft::ui {

// What a rank was idle for, all of the step together.
struct IdleShare {
    traces::Rank rank{};
    traces::GapCause cause{};
    std::optional<traces::Stage> stage; // of the one waited for
    traces::TimeNs time = 0;
};

class GapTable {
public:
    GapTable() = default;
    explicit GapTable(std::vector<traces::Gap> gaps);

    [[nodiscard]] std::span<const traces::Gap> all() const { return gaps_; }
    [[nodiscard]] std::span<const traces::Gap> of(traces::Rank rank) const;
    // The gap of a rank at a moment, or null.
    [[nodiscard]] const traces::Gap* at(traces::Rank rank, traces::TimeNs t) const;
    // The first gap of a rank that begins at or after t, and the last one that ends at or before; or null.
    [[nodiscard]] const traces::Gap* from(traces::Rank rank, traces::TimeNs t) const;
    [[nodiscard]] const traces::Gap* until(traces::Rank rank, traces::TimeNs t) const;
    [[nodiscard]] std::span<const IdleShare> idle() const { return idle_; } // by rank, then by the first of each

    // Calls visit(gap) for each gap of a rank that touches `within` and is `least` long or longer, in the order of time.
    // Those too short are passed over by blocks.
    template <class Visit>
    void forEachWide(traces::Rank rank, traces::Interval within, traces::TimeNs least, Visit&& visit) const
    {
        const std::span<const traces::Gap> own = of(rank);
        const auto endsBefore = [](const traces::Gap& gap, traces::TimeNs t) { return gap.span.end < t; };
        const auto first = std::lower_bound(own.begin(), own.end(), within.begin, endsBefore);
        const std::size_t offset = static_cast<std::size_t>(own.data() - gaps_.data());
        const std::size_t end = offset + own.size();
        for (std::size_t i = offset + static_cast<std::size_t>(first - own.begin());
             i < end && gaps_[i].span.begin <= within.end;) {
            if (i % kLargeBlock == 0 && longestLarge_[i / kLargeBlock] < least) i += kLargeBlock;
            else if (i % kBlock == 0 && longest_[i / kBlock] < least) i += kBlock;
            else {
                if (gaps_[i].span.length() >= least) visit(gaps_[i]);
                ++i;
            }
        }
    }

private:
    static constexpr std::size_t kBlock = 32;
    static constexpr std::size_t kLargeBlock = 1024;

    std::vector<traces::Gap> gaps_;
    std::vector<traces::TimeNs> longest_; // by block, of whatever ranks
    std::vector<traces::TimeNs> longestLarge_;
    std::vector<IdleShare> idle_;
};

} // namespace stagecraft::ui
