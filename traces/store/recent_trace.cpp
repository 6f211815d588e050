// SPDX-License-Identifier: Apache-2.0
#include "traces/store/recent_trace.h"

#include <utility>

namespace stagecraft::traces {

Expected<void> RecentTrace::take(const Record& record)
{
    if (const auto* edge = std::get_if<EdgeRecord>(&record)) {
        Edge moved = edge->edge;
        for (SliceRef* ref : {&moved.from, &moved.to}) {
            const std::uint32_t gone = index(ref->lane) < letGo_.size() ? letGo_[index(ref->lane)] : 0;
            if (ref->index < gone) return {};
            ref->index -= gone;
        }
        return apply(newer_, EdgeRecord{moved});
    }
    Expected<void> applied = apply(newer_, record);
    if (!applied.ok()) return applied;
    if (std::holds_alternative<SliceRecord>(record)) ++slices_;
    if (std::holds_alternative<StepRecord>(record)) {
        ++steps_;
        if (newer_.sliceCount() >= limit_) turn();
    }
    return {};
}

void RecentTrace::turn()
{
    older_ = std::exchange(newer_, Trace{});
    newer_.info = older_.info;
    letGo_.resize(older_.laneCount(), 0);
    for (std::size_t l = 0; l < older_.laneCount(); ++l) {
        newer_.addLane(older_.lanes()[l].info());
        letGo_[l] += static_cast<std::uint32_t>(older_.lanes()[l].size());
    }
    for (std::size_t t = 1; t < older_.textCount(); ++t) newer_.addText(older_.text(TextId{static_cast<std::uint32_t>(t)}));
    for (const MemorySeries& series : older_.memory())
        if (!series.time.empty()) newer_.addMemory(series.rank, series.memory, series.time.back(), series.value.back());
    for (std::size_t g = 0; g < older_.gpus().size(); ++g) {
        const GpuSeries& series = older_.gpus()[g];
        newer_.addGpu(series.gpu);
        if (!series.time.empty()) newer_.addGpuMemory(GpuId{g}, series.time.back(), series.value.back());
    }
    for (const Interval& pause : older_.pauses()) newer_.addPause(pause);
    for (const std::string& note : older_.notes()) newer_.addNote(note);
    for (const std::string& text : older_.information()) newer_.addInformation(text);
    newer_.addLostEvents(older_.lostEvents());
    for (const ClockReading& reading : older_.clockReadings()) newer_.addClockReading(reading);
}

} // namespace stagecraft::traces
