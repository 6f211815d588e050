// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/memory_peaks.h"

#include "traces/analysis/held_activations.h"
#include "traces/analysis/step_view.h"

#include <algorithm>

namespace stagecraft::traces {
namespace {

std::optional<SliceRef> computingAt(const Trace& trace, const RankView& rank, TimeNs time)
{
    auto slice = std::upper_bound(rank.slices.begin(), rank.slices.end(), time,
                                  [&](TimeNs t, SliceRef ref) { return t < trace.lane(ref.lane).begin(ref.index); });
    while (slice != rank.slices.begin()) {
        --slice;
        const Lane& lane = trace.lane(slice->lane);
        if (!isCompute(lane.action(slice->index).kind())) continue;
        return lane.end(slice->index) > time ? std::optional(*slice) : std::nullopt;
    }
    return std::nullopt;
}

MemoryPeak peakOf(const Trace& trace, const RankView& rank, Interval span)
{
    MemoryPeak peak;
    peak.rank = rank.rank;
    peak.at = span.begin;
    const Bytes limit = trace.info.memoryLimit;
    std::optional<TimeNs> beyondSince;
    const auto backBelow = [&](TimeNs at) {
        if (beyondSince) peak.timeBeyond += at - *beyondSince;
        beyondSince.reset();
    };
    forEachMemoryMoment(trace, rank.rank, span, [&](TimeNs at, Bytes sum) {
        if (sum > peak.bytes) {
            peak.at = at;
            peak.bytes = sum;
        }
        if (limit == 0 || sum <= limit) return backBelow(at);
        if (!beyondSince) beyondSince = at;
        if (!peak.runsOut) peak.runsOut = at;
    });
    backBelow(span.end);
    if (peak.bytes == 0) return peak;
    for (const MemorySeries& series : trace.memory())
        if (series.rank == rank.rank) peak.byClass[static_cast<std::size_t>(series.memory)] += series.valueAt(peak.at);
    peak.during = computingAt(trace, rank, peak.at);
    if (peak.runsOut) peak.runsOutDuring = computingAt(trace, rank, *peak.runsOut);
    HeldAtMoment held = heldAt(trace, rank, span.begin, peak.at);
    peak.activations = std::move(held.held);
    peak.unexplained = held.unexplained;
    return peak;
}

} // namespace

std::vector<MemoryPeak> memoryPeaks(const Trace& trace, Step step) { return memoryPeaks(trace, StepIndex(trace), step); }

std::vector<MemoryPeak> memoryPeaks(const Trace& trace, const StepIndex& index, Step step)
{
    const StepView view = viewOf(trace, index, step);
    std::vector<MemoryPeak> peaks;
    if (!view.computes) return peaks;
    for (const RankView& rank : view.ranks) peaks.push_back(peakOf(trace, rank, view.span));
    return peaks;
}

} // namespace stagecraft::traces
