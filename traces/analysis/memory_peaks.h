// SPDX-License-Identifier: Apache-2.0
//
// The memory peak of each rank in a step: when it is, what makes it up, and where the rank runs out, if the trace knows a limit
// (TraceInfo::memoryLimit). From the memory series and the slices alone.
//
//   for (const MemoryPeak& peak : memoryPeaks(trace, Step{0}))
//       use(peak.rank, peak.at, peak.bytes, peak.byClass, peak.activations, peak.runsOut);
#pragma once

#include "traces/store/trace.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace stagecraft::traces {

class StepIndex;

// Changes at one time count as one: what is set and replaced at the same nanosecond was never held. Calls visit(time, sum) with
// the sum of the rank's series at span.begin, and at each later moment within the span at which it may have changed.
template <class Visit>
void forEachMemoryMoment(const Trace& trace, Rank rank, Interval span, Visit&& visit);

struct HeldActivations {
    Flow flow = Flow::Single;
    Stage stage{};
    MicroBatch microbatch{}; // with slices, numbered as in actions
    Bytes bytes = 0;
    bool forWeightGrad = false; // I is done, the rest stays until W

    bool operator==(const HeldActivations&) const = default;
};

struct MemoryPeak {
    Rank rank{};
    TimeNs at = 0; // the first moment of the peak
    Bytes bytes = 0;
    std::array<Bytes, kMemoryClassCount> byClass{}; // sums up to bytes
    std::vector<HeldActivations> activations;       // by direction, stage and micro-batch
    // With the former, the bytes of activations: a run's batches, memory that an allocator gives back late (held_activations.h).
    Bytes unexplained = 0;
    std::optional<SliceRef> during;                 // the computing slice that runs at that moment
    // Where it holds more than the limit: the first moment, what runs then, and for how long altogether.
    std::optional<TimeNs> runsOut;
    std::optional<SliceRef> runsOutDuring;
    TimeNs timeBeyond = 0;
};

// Of every rank with a compute lane; without series its peak is 0. Empty where the step does not compute.
std::vector<MemoryPeak> memoryPeaks(const Trace& trace, Step step);
std::vector<MemoryPeak> memoryPeaks(const Trace& trace, const StepIndex& index, Step step); // for who asks for several

template <class Visit>
void forEachMemoryMoment(const Trace& trace, Rank rank, Interval span, Visit&& visit)
{
    struct Cursor {
        const MemorySeries* series;
        std::size_t next;
        Bytes value;
    };
    std::vector<Cursor> cursors;
    Bytes sum = 0;
    for (const MemorySeries& series : trace.memory()) {
        if (series.rank != rank) continue;
        const auto next = std::upper_bound(series.time.begin(), series.time.end(), span.begin) - series.time.begin();
        cursors.push_back({&series, static_cast<std::size_t>(next), series.valueAt(span.begin)});
        sum += cursors.back().value;
    }
    visit(span.begin, sum);
    for (;;) {
        TimeNs now = span.end;
        for (const Cursor& c : cursors)
            if (c.next < c.series->time.size()) now = std::min(now, c.series->time[c.next]);
        if (now >= span.end) return;
        for (Cursor& c : cursors)
            for (; c.next < c.series->time.size() && c.series->time[c.next] == now; ++c.next) {
                sum += c.series->value[c.next] - c.value;
                c.value = c.series->value[c.next];
            }
        visit(now, sum);
    }
}

} // namespace stagecraft::traces
