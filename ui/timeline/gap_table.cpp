// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/gap_table.h"

#include <algorithm>
#include <tuple>

namespace stagecraft::ui {

using traces::Gap;

GapTable::GapTable(std::vector<Gap> gaps) : gaps_(std::move(gaps))
{
    std::sort(gaps_.begin(), gaps_.end(), [](const Gap& a, const Gap& b) {
        return std::tie(a.rank, a.span.begin) < std::tie(b.rank, b.span.begin);
    });
}

std::span<const Gap> GapTable::of(traces::Rank rank) const
{
    const auto first = std::lower_bound(gaps_.begin(), gaps_.end(), rank,
                                        [](const Gap& gap, traces::Rank r) { return gap.rank < r; });
    const auto last = std::upper_bound(first, gaps_.end(), rank,
                                       [](traces::Rank r, const Gap& gap) { return r < gap.rank; });
    return {first, last};
}

const Gap* GapTable::at(traces::Rank rank, traces::TimeNs t) const
{
    const std::span<const Gap> own = of(rank);
    const auto after = std::upper_bound(own.begin(), own.end(), t,
                                        [](traces::TimeNs time, const Gap& gap) { return time < gap.span.begin; });
    if (after == own.begin()) return nullptr;
    const Gap& gap = *(after - 1);
    return t < gap.span.end ? &gap : nullptr;
}

bool StepAnalyses::isCurrent(const StepPlace& kept, const StepPlace& now)
{
    const std::size_t tolerated = now.finished ? 0 : kept.slices / 64;
    return kept.finished == now.finished && now.slices >= kept.slices && now.slices - kept.slices <= tolerated;
}

const GapTable& StepAnalyses::gaps(const traces::Trace& trace, const StepTable& steps, traces::Step step)
{
    Kept& kept = kept_[step];
    const StepPlace* place = steps.find(step);
    if (!place || place->slices > kMostSlices || isCurrent(kept.gapsAt, *place)) return kept.gaps;
    kept.gapsAt = *place;
    std::vector<Gap> gaps = traces::gapsOf(trace, step);
    // Whether a rank drains is known only when the step is over; until then its idle end is merely the newest moment.
    if (!place->finished) std::erase_if(gaps, [](const Gap& gap) { return gap.cause == traces::GapCause::Draining; });
    kept.gaps = GapTable(std::move(gaps));
    return kept.gaps;
}

const std::optional<traces::StepFigures>& StepAnalyses::figures(const traces::Trace& trace, const StepTable& steps,
                                                                traces::Step step)
{
    Kept& kept = kept_[step];
    const StepPlace* place = steps.find(step);
    if (!place || place->slices > kMostSlices || isCurrent(kept.figuresAt, *place)) return kept.figures;
    kept.figuresAt = *place;
    const auto figures = traces::stepFigures(trace, step);
    kept.figures.reset();
    if (figures.ok()) kept.figures = figures.value();
    return kept.figures;
}

} // namespace stagecraft::ui
