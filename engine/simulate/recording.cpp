// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/recording.h"

#include "engine/schedule/offload.h"
#include "engine/simulate/simulated_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace stagecraft::engine {

using traces::LaneId;
using traces::LaneKind;
using traces::Slice;
using traces::SliceRef;

namespace {

constexpr LaneId kNoLane{static_cast<std::uint32_t>(-1)};

std::string laneName(Rank rank, LaneKind kind, int depth)
{
    const std::string_view what = kind == LaneKind::Transfer ? "sends" : kind == LaneKind::Copy ? copyLaneText(depth) : "collectives";
    const bool numbered = kind == LaneKind::Transfer && depth > 0;
    return fmt::format("rank {} {}{}", rank.value, what, numbered ? fmt::format(" ({})", depth + 1) : "");
}

} // namespace

Recording::Recording(const Schedule& schedule, const CostTable& costs) : transfers_(schedule.order.size()), changes_(schedule.order.size())
{
    trace_.info = simulatedInfo(schedule, costs);
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        trace_.reserveEdges(trace_.addLane({Rank{r}, LaneKind::Compute, 0, fmt::format("rank {}", r)}), schedule.order[r].size());
}

LaneId Recording::lane(Rank rank, LaneKind kind, int depth)
{
    if (kind == LaneKind::Compute) return LaneId{rank.value};
    std::vector<LaneId>& byRank = lanes_[{kind, depth}];
    if (byRank.empty()) byRank.resize(transfers_.size(), kNoLane);
    LaneId& id = byRank[index(rank)];
    if (id == kNoLane) id = trace_.addLane({rank, kind, depth, laneName(rank, kind, depth)});
    return id;
}

SliceRef Recording::add(Rank rank, LaneKind kind, const Slice& slice, int depth) { return trace_.append(lane(rank, kind, depth), slice); }

traces::Trace Recording::trace() &&
{
    for (std::size_t r = 0; r < transfers_.size(); ++r) {
        layTransfers(Rank{r});
        sumMemory(Rank{r});
    }
    return std::move(trace_);
}

// Each onto the first row that is free: transfers of one rank may overlap.
void Recording::layTransfers(Rank rank)
{
    std::vector<Slice>& slices = transfers_[index(rank)];
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    std::vector<LaneId> rows;
    for (const Slice& slice : slices) {
        auto row = std::find_if(rows.begin(), rows.end(), [&](LaneId id) { return trace_.lane(id).lastEnd() <= slice.begin; });
        if (row == rows.end()) row = rows.insert(rows.end(), lane(rank, LaneKind::Transfer, static_cast<int>(rows.size())));
        trace_.append(*row, slice);
    }
}

void Recording::sumMemory(Rank rank)
{
    std::vector<Change>& changes = changes_[index(rank)];
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    struct Held {
        std::optional<std::size_t> series;
        Bytes bytes = 0;
        bool changed = false;
    };
    std::array<Held, traces::kMemoryClassCount> classes{};
    for (std::size_t i = 0; i < changes.size();) {
        const TimeNs now = changes[i].at;
        for (; i < changes.size() && changes[i].at == now; ++i) {
            Held& held = classes[static_cast<std::size_t>(changes[i].memory)];
            held.bytes += changes[i].bytes;
            held.changed = true;
        }
        // what is given back and taken at one moment was never held twice
        for (std::size_t c = 0; c < classes.size(); ++c) {
            Held& held = classes[c];
            if (!std::exchange(held.changed, false)) continue;
            if (!held.series) held.series = trace_.memoryIndex(rank, static_cast<traces::MemoryClass>(c));
            trace_.addMemory(*held.series, now, held.bytes);
        }
    }
}

} // namespace stagecraft::engine
