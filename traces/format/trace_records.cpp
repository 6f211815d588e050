// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_records.h"

#include <queue>
#include <tuple>

namespace stagecraft::traces {
namespace {

// One lane, memory series, GPU or the list of steps, by the time of its next record.
struct Stream {
    enum class Kind : std::uint8_t { Lane, Memory, Gpu, Steps };
    TimeNs time = 0;
    Kind kind = Kind::Lane;
    std::size_t number = 0;
    std::size_t next = 0;

    bool operator>(const Stream& other) const
    {
        return std::tie(time, kind, number) > std::tie(other.time, other.kind, other.number);
    }
};

class Walk {
public:
    Walk(const Trace& trace, const std::function<void(const Record&)>& visit)
        : trace_(trace), visit_(visit), slicesDone_(trace.laneCount()), edgesDone_(trace.laneCount())
    {
    }

    void run()
    {
        declare();
        std::priority_queue<Stream, std::vector<Stream>, std::greater<>> streams;
        const auto push = [&](Stream stream) {
            if (stream.next >= sizeOf(stream)) return;
            stream.time = timeOf(stream);
            streams.push(stream);
        };
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) push({.kind = Stream::Kind::Lane, .number = l});
        for (std::size_t m = 0; m < trace_.memory().size(); ++m) push({.kind = Stream::Kind::Memory, .number = m});
        for (std::size_t g = 0; g < trace_.gpus().size(); ++g) push({.kind = Stream::Kind::Gpu, .number = g});
        push({.kind = Stream::Kind::Steps});
        while (!streams.empty()) {
            Stream stream = streams.top();
            streams.pop();
            emit(stream);
            ++stream.next;
            push(stream);
        }
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) emitEdges(l);
    }

private:
    void declare()
    {
        visit_(InfoRecord{trace_.info});
        for (std::uint32_t t = 1; t < trace_.textCount(); ++t) visit_(TextRecord{trace_.text(TextId{t})});
        for (const Lane& lane : trace_.lanes()) visit_(LaneRecord{lane.info()});
        for (const std::string& note : trace_.notes()) visit_(NoteRecord{note});
        for (const std::string& text : trace_.information()) visit_(NoteRecord{text, NoteKind::Information});
        for (const GpuSeries& series : trace_.gpus()) visit_(GpuRecord{series.gpu});
        if (trace_.lostEvents() != 0) visit_(LostRecord{trace_.lostEvents()});
        for (const Interval& pause : trace_.pauses()) visit_(PauseRecord{pause});
        for (const ClockReading& reading : trace_.clockReadings()) visit_(ClockRecord{reading});
    }

    [[nodiscard]] std::size_t sizeOf(const Stream& stream) const
    {
        switch (stream.kind) {
        case Stream::Kind::Lane: return trace_.lane(LaneId{stream.number}).size();
        case Stream::Kind::Memory: return trace_.memory()[stream.number].time.size();
        case Stream::Kind::Gpu: return trace_.gpus()[stream.number].time.size();
        case Stream::Kind::Steps: return trace_.steps().size();
        }
        return 0;
    }

    [[nodiscard]] TimeNs timeOf(const Stream& stream) const
    {
        switch (stream.kind) {
        case Stream::Kind::Lane: return trace_.lane(LaneId{stream.number}).begin(stream.next);
        case Stream::Kind::Memory: return trace_.memory()[stream.number].time[stream.next];
        case Stream::Kind::Gpu: return trace_.gpus()[stream.number].time[stream.next];
        case Stream::Kind::Steps: return trace_.steps()[stream.next].span.end;
        }
        return 0;
    }

    void emit(const Stream& stream)
    {
        switch (stream.kind) {
        case Stream::Kind::Lane: {
            const LaneId lane{stream.number};
            visit_(SliceRecord{lane, trace_.lane(lane).slice(stream.next)});
            slicesDone_[stream.number] = stream.next + 1;
            emitEdges(stream.number);
            break;
        }
        case Stream::Kind::Memory: {
            const MemorySeries& series = trace_.memory()[stream.number];
            visit_(MemoryRecord{series.rank, series.memory, series.time[stream.next], series.value[stream.next]});
            break;
        }
        case Stream::Kind::Gpu: {
            const GpuSeries& series = trace_.gpus()[stream.number];
            visit_(GpuMemoryRecord{GpuId{stream.number}, series.time[stream.next], series.value[stream.next]});
            break;
        }
        case Stream::Kind::Steps: visit_(StepRecord{trace_.steps()[stream.next]}); break;
        }
    }

    // Those into this lane whose ends are both out. Their order is kept: one that has to wait holds up the rest.
    void emitEdges(std::size_t lane)
    {
        const std::vector<Edge>& edges = trace_.edgesOfLane(LaneId{lane});
        std::size_t& next = edgesDone_[lane];
        for (; next < edges.size(); ++next) {
            const Edge& edge = edges[next];
            if (edge.to.index >= slicesDone_[lane] || edge.from.index >= slicesDone_[index(edge.from.lane)]) return;
            visit_(EdgeRecord{edge});
        }
    }

    const Trace& trace_;
    const std::function<void(const Record&)>& visit_;
    std::vector<std::size_t> slicesDone_; // per lane
    std::vector<std::size_t> edgesDone_;
};

} // namespace

void forEachRecord(const Trace& trace, const std::function<void(const Record&)>& visit) { Walk(trace, visit).run(); }

} // namespace stagecraft::traces
