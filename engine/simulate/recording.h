// SPDX-License-Identifier: Apache-2.0
//
// A trace in the making: whoever simulates says what happened as it happens, in the order of time of each rank, and who holds how
// much from when on in any order. Transfers find a free row and memory its order at the end. Not thread-safe.
//
//   Recording recording(schedule, costs);
//   const SliceRef f = recording.add(Rank{0}, LaneKind::Compute, {begin, end, action, step, {}});
//   recording.hold(Rank{0}, MemoryClass::Activations, begin, bytes);
//   Trace trace = std::move(recording).trace();
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"
#include "traces/store/trace.h"

#include <map>
#include <vector>

namespace stagecraft::engine {

class Recording {
public:
    Recording(const Schedule& schedule, const CostTable& costs);

    // Onto a lane of the rank, which is made where it does not exist. Slices of a lane come in their order.
    traces::SliceRef add(Rank rank, traces::LaneKind kind, const traces::Slice& slice, int depth = 0);
    // A hand-off that the rank sends; any order.
    void transfer(Rank from, const traces::Slice& slice) { transfers_[index(from)].push_back(slice); }
    // Edges into a lane come in the order of its slices.
    void edge(const traces::Edge& edge) { trace_.addEdge(edge); }
    // The rank holds so much more (or less) from that moment on; any order.
    void hold(Rank rank, traces::MemoryClass memory, TimeNs at, Bytes change)
    {
        if (change != 0) changes_[index(rank)].push_back({at, change, memory});
    }
    void step(const traces::StepSpan& span) { trace_.addStep(span); }
    [[nodiscard]] traces::Interval extent() const { return trace_.extent(); }

    traces::Trace trace() &&;

private:
    struct Change {
        TimeNs at;
        Bytes bytes;
        traces::MemoryClass memory;
    };
    traces::LaneId lane(Rank rank, traces::LaneKind kind, int depth);
    void layTransfers(Rank rank);
    void sumMemory(Rank rank);

    traces::Trace trace_;
    std::map<std::pair<traces::LaneKind, int>, std::vector<traces::LaneId>> lanes_; // but the compute lanes, which are numbered as the ranks
    std::vector<std::vector<traces::Slice>> transfers_;                             // by rank
    std::vector<std::vector<Change>> changes_;                                      // by rank
};

} // namespace stagecraft::engine
