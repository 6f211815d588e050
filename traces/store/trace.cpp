// SPDX-License-Identifier: Apache-2.0
#include "traces/store/trace.h"

#include "traces/base/text.h"

#include <algorithm>

namespace stagecraft::traces {

std::string_view labelText(TraceLabel label)
{
    switch (label) {
    case TraceLabel::Simulated: return "simulated";
    case TraceLabel::Measured: return "measured";
    case TraceLabel::Emulated: return "emulated";
    case TraceLabel::Imported: return "imported";
    }
    return "";
}

std::string_view clockText(ClockKind clock)
{
    switch (clock) {
    case ClockKind::Virtual: return "virtual";
    case ClockKind::Monotonic: return "monotonic";
    case ClockKind::Foreign: return "foreign";
    }
    return "";
}

std::string_view memoryClassText(MemoryClass memory)
{
    switch (memory) {
    case MemoryClass::Weights: return "weights";
    case MemoryClass::Gradients: return "gradients";
    case MemoryClass::Optimizer: return "optimizer";
    case MemoryClass::Activations: return "activations";
    case MemoryClass::Other: return "other";
    case MemoryClass::Versions: return "weight versions";
    case MemoryClass::Buffers: return "transfer buffers";
    case MemoryClass::Recompute: return "recomputed";
    }
    return "";
}

Bytes MemorySeries::valueAt(TimeNs t) const
{
    const auto after = std::upper_bound(time.begin(), time.end(), t);
    if (after == time.begin()) return 0;
    return value[static_cast<std::size_t>(after - time.begin()) - 1];
}

LaneId Trace::addLane(LaneInfo lane)
{
    lanes_.emplace_back(std::move(lane));
    edges_.emplace_back();
    return LaneId{lanes_.size() - 1};
}

std::size_t Trace::memoryIndex(Rank rank, MemoryClass memory)
{
    const auto series = std::find_if(memory_.begin(), memory_.end(),
                                     [&](const MemorySeries& s) { return s.rank == rank && s.memory == memory; });
    if (series != memory_.end()) return static_cast<std::size_t>(series - memory_.begin());
    memory_.push_back({rank, memory, {}, {}});
    return memory_.size() - 1;
}

void Trace::reserveMemory(std::size_t series, std::size_t count)
{
    memory_[series].time.reserve(count);
    memory_[series].value.reserve(count);
}

void Trace::addMemory(Rank rank, MemoryClass memory, TimeNs time, Bytes value)
{
    addMemory(memoryIndex(rank, memory), time, value);
}

GpuId Trace::addGpu(Gpu gpu)
{
    gpus_.push_back({.gpu = std::move(gpu)});
    return GpuId{gpus_.size() - 1};
}

void Trace::addGpuMemory(GpuId gpu, TimeNs time, const GpuMemory& memory)
{
    GpuSeries& series = gpus_[index(gpu)];
    series.time.push_back(series.time.empty() ? time : std::max(time, series.time.back()));
    series.value.push_back(memory);
}

void Trace::addStep(const StepSpan& step)
{
    if (!latestStep_ || *latestStep_ < step.step) { // steps mostly come in order
        latestStep_ = step.step;
        steps_.push_back(step);
        return;
    }
    const auto known = std::find_if(steps_.rbegin(), steps_.rend(), [&](const StepSpan& s) { return s.step == step.step; });
    if (known != steps_.rend()) *known = step;
    else steps_.push_back(step);
}

TextId Trace::intern(std::string_view text)
{
    if (text.empty()) return TextId{};
    const auto known = textIds_.find(text);
    if (known != textIds_.end()) return known->second;
    return addText(std::string(text));
}

TextId Trace::addText(std::string text)
{
    const TextId id{texts_.size()};
    textIds_.emplace(text, id);
    texts_.push_back(std::move(text));
    return id;
}

std::optional<LaneId> Trace::findLane(Rank rank, LaneKind kind, std::int32_t depth) const
{
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const LaneInfo& lane = lanes_[i].info();
        if (lane.rank == rank && lane.kind == kind && lane.depth == depth) return LaneId{i};
    }
    return std::nullopt;
}

std::string Trace::sliceName(SliceRef ref) const
{
    const Lane& from = lane(ref.lane);
    const Action& action = from.action(ref.index);
    return action.kind() == ActionKind::None ? text(from.text(ref.index)) : toText(action);
}

std::vector<Edge> Trace::edgesInto(SliceRef to) const
{
    const std::vector<Edge>& edges = edges_[index(to.lane)];
    const auto range = std::equal_range(edges.begin(), edges.end(), Edge{.to = to},
                                        [](const Edge& a, const Edge& b) { return a.to.index < b.to.index; });
    return {range.first, range.second};
}

std::vector<Edge> Trace::edgesFrom(SliceRef from) const
{
    std::vector<Edge> found;
    for (const std::vector<Edge>& edges : edges_)
        std::copy_if(edges.begin(), edges.end(), std::back_inserter(found),
                     [&](const Edge& edge) { return edge.from == from; });
    return found;
}

std::size_t Trace::edgeCount() const
{
    std::size_t count = 0;
    for (const std::vector<Edge>& edges : edges_) count += edges.size();
    return count;
}

const MemorySeries* Trace::memorySeries(Rank rank, MemoryClass memory) const
{
    const auto series = std::find_if(memory_.begin(), memory_.end(),
                                     [&](const MemorySeries& s) { return s.rank == rank && s.memory == memory; });
    return series == memory_.end() ? nullptr : &*series;
}

Trace Trace::slicesOnly() const
{
    Trace copy;
    copy.info = info;
    copy.lanes_ = lanes_;
    copy.edges_.resize(lanes_.size());
    copy.texts_ = texts_;
    copy.textIds_ = textIds_;
    return copy;
}

std::size_t Trace::sliceCount() const
{
    std::size_t count = 0;
    for (const Lane& lane : lanes_) count += lane.size();
    return count;
}

Interval Trace::extent() const
{
    bool any = false;
    Interval all;
    for (const Lane& lane : lanes_) {
        if (lane.empty()) continue;
        all.begin = any ? std::min(all.begin, lane.begin(0)) : lane.begin(0);
        all.end = any ? std::max(all.end, lane.lastEnd()) : lane.lastEnd();
        any = true;
    }
    return all;
}

TimeNs Trace::pausedWithin(Interval interval) const
{
    TimeNs paused = 0;
    for (const Interval& pause : pauses_)
        paused += std::max<TimeNs>(0, std::min(pause.end, interval.end) - std::max(pause.begin, interval.begin));
    return paused;
}

std::vector<std::string> caveatsOf(const Trace& trace)
{
    std::vector<std::string> caveats;
    if (trace.lostEvents() > 0) caveats.push_back(counted(trace.lostEvents(), "event") + " lost while it was recorded");
    caveats.insert(caveats.end(), trace.notes().begin(), trace.notes().end());
    return caveats;
}

} // namespace stagecraft::traces
