// SPDX-License-Identifier: Apache-2.0
//
// Traces drawn as staircases: a row per rank, a cell per unit of time. "." is idle, "-" goes on with the action before it,
// anything else is an action of one unit. Data edges lead from F(s,i) to F(s+1,i) and from B/I(s+1,i) to B/I(s,i); what
// crosses ranks is ready `latency` after its producer's end.
#pragma once

#include "traces/store/trace.h"

#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace stagecraft::traces::test {

struct StaircaseOptions {
    TimeNs unit = 1000;
    TimeNs latency = 0;
    TimeNs origin = 0;
    std::int32_t chunks = 1;
    Step step{};
};

inline void addDataEdges(Trace& trace, TimeNs latency, Step step)
{
    // direction (0 forward, 1 backward), stage, micro-batch
    std::map<std::tuple<int, int, int>, SliceRef> made;
    const auto direction = [](ActionKind kind) {
        if (kind == ActionKind::Forward) return 0;
        return kind == ActionKind::Backward || kind == ActionKind::InputGrad ? 1 : -1;
    };
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (std::size_t i = 0; i < trace.lane(LaneId{l}).size(); ++i) {
            const Slice slice = trace.lane(LaneId{l}).slice(i);
            const int way = direction(slice.action.kind());
            if (slice.step == step && way >= 0)
                made[{way, slice.action.stage().value, slice.action.microbatch().value}] = {LaneId{l},
                                                                                            static_cast<std::uint32_t>(i)};
        }
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (std::size_t i = 0; i < trace.lane(LaneId{l}).size(); ++i) {
            const Slice slice = trace.lane(LaneId{l}).slice(i);
            const int way = direction(slice.action.kind());
            if (slice.step != step || way < 0) continue;
            const auto from =
                made.find({way, slice.action.stage().value + (way == 0 ? -1 : 1), slice.action.microbatch().value});
            if (from == made.end()) continue;
            const bool crosses = trace.lane(from->second.lane).info().rank != trace.lane(LaneId{l}).info().rank;
            trace.addEdge({.kind = EdgeKind::Data,
                           .from = from->second,
                           .to = {LaneId{l}, static_cast<std::uint32_t>(i)},
                           .ready = trace.slice(from->second).end + (crosses ? latency : 0)});
        }
}

inline void addStaircase(Trace& trace, const std::vector<std::string>& rows, const StaircaseOptions& options = {})
{
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto known = trace.findLane(Rank{r}, LaneKind::Compute);
        const LaneId lane =
            known ? *known
                  : trace.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = "rank " + std::to_string(r)});
        std::vector<Slice> slices;
        std::istringstream cells(rows[r]);
        TimeNs now = options.origin;
        for (std::string cell; cells >> cell; now += options.unit) {
            if (cell == ".") continue;
            if (cell == "-") slices.back().end += options.unit;
            else
                slices.push_back(
                    {.begin = now, .end = now + options.unit, .action = parseAction(cell).value(), .step = options.step});
        }
        for (const Slice& slice : slices) trace.append(lane, slice);
    }
    addDataEdges(trace, options.latency, options.step);
}

inline Trace staircase(const std::vector<std::string>& rows, const StaircaseOptions& options = {})
{
    Trace trace;
    trace.info.ranks = static_cast<std::int32_t>(rows.size());
    trace.info.chunks = options.chunks;
    const int stages = static_cast<int>(rows.size()) * options.chunks;
    for (int s = 0; s < stages; ++s) trace.info.stageToRank.push_back(Rank{s % static_cast<int>(rows.size())});
    addStaircase(trace, rows, options);
    return trace;
}

} // namespace stagecraft::traces::test
