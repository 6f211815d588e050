// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/gap_table.h"

#include <tuple>

namespace stagecraft::ui {

using traces::Gap;
using traces::GapCause;
using traces::TimeNs;

namespace {

std::vector<TimeNs> longestOf(const std::vector<Gap>& gaps, std::size_t block)
{
    std::vector<TimeNs> longest((gaps.size() + block - 1) / block, 0);
    for (std::size_t i = 0; i < gaps.size(); ++i) longest[i / block] = std::max(longest[i / block], gaps[i].span.length());
    return longest;
}

std::vector<IdleShare> idleOf(const std::vector<Gap>& gaps)
{
    std::vector<IdleShare> idle;
    std::size_t own = 0; // first of the rank
    for (const Gap& gap : gaps) {
        if (own < idle.size() && idle[own].rank != gap.rank) own = idle.size();
        const bool byStage = gap.cause == GapCause::WaitForStage || gap.cause == GapCause::Transfer;
        const auto stage = byStage ? std::optional(gap.stage) : std::nullopt;
        // A rank waits for few: found by looking at all.
        const auto known =
            std::find_if(idle.begin() + static_cast<std::ptrdiff_t>(own), idle.end(),
                         [&](const IdleShare& share) { return share.cause == gap.cause && share.stage == stage; });
        if (known != idle.end()) known->time += gap.span.length();
        else idle.push_back({gap.rank, gap.cause, stage, gap.span.length()});
    }
    return idle;
}

} // namespace

GapTable::GapTable(std::vector<Gap> gaps) : gaps_(std::move(gaps))
{
    const auto earlier = [](const Gap& a, const Gap& b) {
        return std::tie(a.rank, a.span.begin) < std::tie(b.rank, b.span.begin);
    };
    if (!std::is_sorted(gaps_.begin(), gaps_.end(), earlier)) std::sort(gaps_.begin(), gaps_.end(), earlier);
    longest_ = longestOf(gaps_, kBlock);
    longestLarge_ = longestOf(gaps_, kLargeBlock);
    idle_ = idleOf(gaps_);
}

std::span<const Gap> GapTable::of(traces::Rank rank) const
{
    const auto first =
        std::lower_bound(gaps_.begin(), gaps_.end(), rank, [](const Gap& gap, traces::Rank r) { return gap.rank < r; });
    const auto last =
        std::upper_bound(first, gaps_.end(), rank, [](traces::Rank r, const Gap& gap) { return r < gap.rank; });
    return {first, last};
}

const Gap* GapTable::at(traces::Rank rank, TimeNs t) const
{
    const std::span<const Gap> own = of(rank);
    const auto after =
        std::upper_bound(own.begin(), own.end(), t, [](TimeNs time, const Gap& gap) { return time < gap.span.begin; });
    if (after == own.begin()) return nullptr;
    const Gap& gap = *(after - 1);
    return t < gap.span.end ? &gap : nullptr;
}

const Gap* GapTable::from(traces::Rank rank, TimeNs t) const
{
    const std::span<const Gap> own = of(rank);
    const auto first =
        std::lower_bound(own.begin(), own.end(), t, [](const Gap& gap, TimeNs time) { return gap.span.begin < time; });
    return first == own.end() ? nullptr : &*first;
}

const Gap* GapTable::until(traces::Rank rank, TimeNs t) const
{
    const std::span<const Gap> own = of(rank);
    const auto after =
        std::upper_bound(own.begin(), own.end(), t, [](TimeNs time, const Gap& gap) { return time < gap.span.end; });
    return after == own.begin() ? nullptr : &*(after - 1);
}

} // namespace stagecraft::ui
