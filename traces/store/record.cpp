// SPDX-License-Identifier: Apache-2.0
#include "traces/store/record.h"

#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <string>

namespace stagecraft::traces {
namespace {

Error unknownLane(LaneId lane, std::size_t count)
{
    return Error{"lane " + std::to_string(lane.value) + " is not declared; the trace has " + counted(count, "lane")};
}

struct Applier {
    Trace& trace;

    Expected<void> operator()(const InfoRecord& r) const
    {
        trace.info = r.info;
        return {};
    }
    Expected<void> operator()(const LaneRecord& r) const
    {
        trace.addLane(r.lane);
        return {};
    }
    Expected<void> operator()(const TextRecord& r) const
    {
        trace.addText(r.text);
        return {};
    }
    Expected<void> operator()(const SliceRecord& r) const
    {
        if (index(r.lane) >= trace.laneCount()) return unknownLane(r.lane, trace.laneCount());
        if (!trace.lane(r.lane).canAppend(r.slice))
            return Error{"slice " + toText(r.slice.action) + " of lane " + std::to_string(r.lane.value) + " begins at " +
                         std::to_string(r.slice.begin) + " ns and ends at " + std::to_string(r.slice.end) +
                         " ns, but the slice before it ends at " + std::to_string(trace.lane(r.lane).lastEnd()) + " ns"};
        if (index(r.slice.text) >= trace.textCount())
            return Error{"a slice of lane " + std::to_string(r.lane.value) + " names text " +
                         std::to_string(r.slice.text.value) + ", but only " + std::to_string(trace.textCount() - 1) +
                         " were given"};
        trace.append(r.lane, r.slice);
        return {};
    }
    Expected<void> operator()(const EdgeRecord& r) const
    {
        for (const SliceRef ref : {r.edge.from, r.edge.to}) {
            if (index(ref.lane) >= trace.laneCount()) return unknownLane(ref.lane, trace.laneCount());
            if (ref.index >= trace.lane(ref.lane).size())
                return Error{"an edge names slice " + std::to_string(ref.index) + " of lane " +
                             std::to_string(ref.lane.value) + ", which has " +
                             counted(trace.lane(ref.lane).size(), "slice")};
        }
        const std::vector<Edge>& edges = trace.edgesOfLane(r.edge.to.lane);
        if (!edges.empty() && edges.back().to.index > r.edge.to.index)
            return Error{"an edge into slice " + std::to_string(r.edge.to.index) + " of lane " +
                         std::to_string(r.edge.to.lane.value) + " came after one into a later slice"};
        trace.addEdge(r.edge);
        return {};
    }
    Expected<void> operator()(const MemoryRecord& r) const
    {
        trace.addMemory(r.rank, r.memory, r.time, r.value);
        return {};
    }
    Expected<void> operator()(const StepRecord& r) const
    {
        trace.addStep(r.step);
        return {};
    }
    Expected<void> operator()(const PauseRecord& r) const
    {
        trace.addPause(r.pause);
        return {};
    }
    Expected<void> operator()(const NoteRecord& r) const
    {
        if (r.kind == NoteKind::Information) trace.addInformation(r.note);
        else trace.addNote(r.note);
        return {};
    }
    Expected<void> operator()(const LostRecord& r) const
    {
        trace.addLostEvents(r.events);
        return {};
    }
    Expected<void> operator()(const ClockRecord& r) const
    {
        trace.addClockReading(r.reading);
        return {};
    }
    Expected<void> operator()(const GpuRecord& r) const
    {
        if (trace.gpus().size() >= kMostGpus) return Error{"more than " + std::to_string(kMostGpus) + " GPUs"};
        trace.addGpu(r.gpu);
        return {};
    }
    Expected<void> operator()(const GpuMemoryRecord& r) const
    {
        if (index(r.gpu) >= trace.gpus().size())
            return Error{"GPU " + std::to_string(r.gpu.value) + " is not declared; the trace has " + counted(trace.gpus().size(), "GPU")};
        trace.addGpuMemory(r.gpu, r.time, r.memory);
        return {};
    }
    Expected<void> operator()(const SessionRecord&) const { return {}; }
};

} // namespace

Expected<void> apply(Trace& trace, const Record& record)
{
    return std::visit(Applier{trace}, record);
}

} // namespace stagecraft::traces
