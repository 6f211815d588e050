// SPDX-License-Identifier: Apache-2.0
//
// A trace: the only thing that is drawn or analysed. The simulator, the live engine and importers all write this store:
// lanes of slices, counters, and typed edges between slices, so that causes of bubbles and critical paths need no
// schedule. A view never asks where a trace came from, only for its label. Value type; copying shares sealed chunks.
// One thread writes it; snapshots (copies) may be read elsewhere.
//
//   Trace trace;
//   LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .name = "rank 0"});
//   SliceRef f0 = trace.append(lane, {.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0})});
//   trace.addEdge({.kind = EdgeKind::Data, .from = f0, .to = f1, .ready = 1200});
#pragma once

#include "traces/store/gpu_memory.h"
#include "traces/store/lane.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::traces {

enum class TraceLabel : std::uint8_t { Simulated, Measured, Emulated, Imported };
std::string_view labelText(TraceLabel label); // "simulated", ...

// Which clock the times of a trace are read from.
enum class ClockKind : std::uint8_t {
    Virtual,   // a simulation or an emulated run; starts at 0
    Monotonic, // CLOCK_MONOTONIC of the host that ran
    Foreign,   // another tool's or host's clock
};
std::string_view clockText(ClockKind clock); // "virtual", "monotonic", "foreign"

struct TraceInfo {
    TraceLabel label = TraceLabel::Simulated;
    ClockKind clock = ClockKind::Virtual;
    std::string title;    // plan and schedule, for people
    std::string schedule; // name; empty when unknown
    std::string planJson; // the plan that made the trace; empty when unknown
    std::int32_t ranks = 0;
    std::int32_t chunks = 1;       // per rank and direction (v)
    std::int32_t microbatches = 0; // per step
    std::vector<Rank> stageToRank; // one entry per stage; of two directions, the one that runs down
    std::string host;              // where it was measured
    std::int32_t slices = 1;       // of a sequence: slice k of micro-batch i is numbered i * slices + k in actions
    std::vector<Rank> upStageToRank = {}; // the other of two directions; empty where there is one
    Bytes memoryLimit = 0;                // of a rank: beyond it, it would run out; 0: not known
    bool inference = false;               // nothing comes back: a forward keeps activations only while it runs

    bool operator==(const TraceInfo&) const = default;
};

struct SliceRef {
    LaneId lane{};
    std::uint32_t index = 0;

    constexpr auto operator<=>(const SliceRef&) const = default;
};

enum class EdgeKind : std::uint8_t {
    Data,   // `to` needs what `from` made; available to it at `ready`
    Memory, // `to` needed memory that `from` gave back
    Flush,  // `to` belongs to the next step and waited for the optimizer
};
// The order on a rank needs no edges: it is the order of the lane.

struct Edge {
    EdgeKind kind = EdgeKind::Data;
    SliceRef from{};
    SliceRef to{};
    TimeNs ready = 0; // when the consumer could have used it: producer's end plus the transfer

    bool operator==(const Edge&) const = default;
};

enum class MemoryClass : std::uint8_t {
    Weights,
    Gradients,
    Optimizer,
    Activations,
    Other,
    Versions,  // of weights that micro-batches in flight still need (PipeDream's stash), beside the newest
    Buffers,   // of transfers: what was received and not used yet, what was made and not sent yet
    Recompute, // activations that a recompute made anew, until their backward
};
inline constexpr MemoryClass kLastMemoryClass = MemoryClass::Recompute;
inline constexpr std::size_t kMemoryClassCount = static_cast<std::size_t>(kLastMemoryClass) + 1;
std::string_view memoryClassText(MemoryClass memory); // "weights", ...

// Bytes that a rank holds in one class: a step function, value[i] from time[i] on; times ascend.
struct MemorySeries {
    Rank rank{};
    MemoryClass memory = MemoryClass::Other;
    std::vector<TimeNs> time;
    std::vector<Bytes> value;

    [[nodiscard]] Bytes valueAt(TimeNs t) const; // 0 before the first point
    bool operator==(const MemorySeries&) const = default;
};

struct StepSpan {
    Step step{};
    Interval span{};
    std::optional<double> loss;

    bool operator==(const StepSpan&) const = default;
};

// How the clock of a rank in a process of its own was found to stand to the trace's, which is rank 0's.
struct ClockReading {
    Rank rank{};
    std::string host;
    TimeNs at = 0;     // on the rank's clock
    TimeNs offset = 0; // makes its time the trace's
    TimeNs error = 0;  // the offset is wrong by no more; 0 with offset 0: the two share a clock

    bool operator==(const ClockReading&) const = default;
};

class Trace {
public:
    TraceInfo info;

    LaneId addLane(LaneInfo lane);
    SliceRef append(LaneId lane, const Slice& slice)
    {
        Lane& target = lanes_[index(lane)];
        assert(target.canAppend(slice));
        const SliceRef ref{lane, static_cast<std::uint32_t>(target.size())};
        target.append(slice);
        return ref;
    }
    // The consumer must not precede consumers already given for that lane: edges of a lane arrive in slice order.
    void addEdge(const Edge& edge)
    {
        std::vector<Edge>& edges = edges_[index(edge.to.lane)];
        assert(edges.empty() || edges.back().to.index <= edge.to.index);
        edges.push_back(edge);
    }
    // A point earlier than the last of its series is moved to the last time, never dropped.
    void addMemory(Rank rank, MemoryClass memory, TimeNs time, Bytes value);
    // The same for a writer of many points: memoryIndex() makes the series if need be and stays valid.
    std::size_t memoryIndex(Rank rank, MemoryClass memory);
    void addMemory(std::size_t series, TimeNs time, Bytes value)
    {
        MemorySeries& target = memory_[series];
        if (!target.time.empty()) time = std::max(time, target.time.back());
        target.time.push_back(time);
        target.value.push_back(value);
    }
    // Room for what a writer knows will come.
    void reserveEdges(LaneId consumer, std::size_t count) { edges_[index(consumer)].reserve(count); }
    void reserveMemory(std::size_t series, std::size_t count);
    void addStep(const StepSpan& step); // replaces the span of a step already known
    void addPause(Interval pause) { pauses_.push_back(pause); }
    // A point earlier than the last of its series is moved to the last time.
    GpuId addGpu(Gpu gpu);
    void addGpuMemory(GpuId gpu, TimeNs time, const GpuMemory& memory);
    void addNote(std::string note) { notes_.push_back(std::move(note)); } // a warning: what a reader of the trace must know
    void addInformation(std::string text) { information_.push_back(std::move(text)); } // nothing is amiss: which way the run went
    void addLostEvents(std::int64_t count) { lostEvents_ += count; }
    void addClockReading(ClockReading reading) { clockReadings_.push_back(std::move(reading)); }
    TextId intern(std::string_view text);
    TextId addText(std::string text); // as the next number, also where that text is known: a stream counts them

    [[nodiscard]] std::size_t laneCount() const { return lanes_.size(); }
    [[nodiscard]] const Lane& lane(LaneId id) const { return lanes_[index(id)]; }
    [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
    [[nodiscard]] std::optional<LaneId> findLane(Rank rank, LaneKind kind, std::int32_t depth = 0) const;
    [[nodiscard]] Slice slice(SliceRef ref) const { return lane(ref.lane).slice(ref.index); }
    [[nodiscard]] std::string sliceName(SliceRef ref) const; // "0F0", or the slice's text
    [[nodiscard]] const std::string& text(TextId id) const { return texts_[index(id)]; }
    [[nodiscard]] std::size_t textCount() const { return texts_.size(); } // with the empty one

    [[nodiscard]] std::vector<Edge> edgesInto(SliceRef to) const;
    [[nodiscard]] std::vector<Edge> edgesFrom(SliceRef from) const; // linear in the edges of the trace
    [[nodiscard]] const std::vector<Edge>& edgesOfLane(LaneId lane) const { return edges_[index(lane)]; } // by consumer
    [[nodiscard]] std::size_t edgeCount() const;

    [[nodiscard]] const std::vector<MemorySeries>& memory() const { return memory_; }
    [[nodiscard]] const MemorySeries* memorySeries(Rank rank, MemoryClass memory) const;
    [[nodiscard]] const std::vector<GpuSeries>& gpus() const { return gpus_; } // by GpuId; none where there are none, or nobody told
    [[nodiscard]] const std::vector<StepSpan>& steps() const { return steps_; }
    [[nodiscard]] const std::vector<Interval>& pauses() const { return pauses_; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    [[nodiscard]] const std::vector<std::string>& information() const { return information_; }
    [[nodiscard]] std::int64_t lostEvents() const { return lostEvents_; }
    [[nodiscard]] const std::vector<ClockReading>& clockReadings() const { return clockReadings_; } // none: one clock

    // Lanes and texts alone: a copy that costs little even of a long trace, for who needs no more.
    [[nodiscard]] Trace slicesOnly() const;
    [[nodiscard]] std::size_t sliceCount() const;
    [[nodiscard]] Interval extent() const; // first begin to last end; {0, 0} when empty
    [[nodiscard]] TimeNs pausedWithin(Interval interval) const;

private:
    std::vector<Lane> lanes_;
    std::vector<std::vector<Edge>> edges_; // per lane of the consumer, ascending by to.index
    std::vector<MemorySeries> memory_;
    std::vector<GpuSeries> gpus_;
    std::vector<StepSpan> steps_;
    std::optional<Step> latestStep_; // the highest of them
    std::vector<Interval> pauses_;
    std::vector<std::string> notes_;
    std::vector<std::string> information_;
    std::vector<std::string> texts_{""};
    std::map<std::string, TextId, std::less<>> textIds_;
    std::int64_t lostEvents_ = 0;
    std::vector<ClockReading> clockReadings_;
};

// What whoever uses the trace must know of it, a sentence each: its notes, and how many events were lost.
std::vector<std::string> caveatsOf(const Trace& trace);

} // namespace stagecraft::traces
