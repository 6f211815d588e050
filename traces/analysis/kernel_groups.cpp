// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/kernel_groups.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace stagecraft::traces {

namespace {

// Whether what is of the rank's two lanes of blocks lies on lanes of its own: the blocks of a pair may run at the same time.
bool tellsPairsApart(const Trace& trace, Rank rank)
{
    return std::any_of(trace.lanes().begin(), trace.lanes().end(), [&](const Lane& lane) { return lane.info().rank == rank && isBeside(lane.info()); });
}

} // namespace

std::optional<SliceRef> blockOf(const Trace& trace, SliceRef slice)
{
    const LaneInfo& lane = trace.lane(slice.lane).info();
    if (lane.kind == LaneKind::Compute) return slice;
    if (!holdsKernels(lane) && !holdsGaps(lane) && !holdsOperators(lane)) return std::nullopt;
    const TimeNs begin = trace.slice(slice).begin;
    const bool apart = tellsPairsApart(trace, lane.rank);
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& blocks = trace.lane(LaneId{l});
        if (blocks.info().kind != LaneKind::Compute || blocks.info().rank != lane.rank) continue;
        if (apart && !holdsGaps(lane) && (blocks.info().depth > 0) != isBeside(lane)) continue;
        const std::size_t i = blocks.firstEndingAfter(begin);
        if (i < blocks.size() && blocks.begin(i) <= begin) return SliceRef{LaneId{l}, static_cast<std::uint32_t>(i)};
    }
    return std::nullopt;
}

std::vector<KernelGroup> kernelsOf(const Trace& trace, SliceRef block)
{
    const Rank rank = trace.lane(block.lane).info().rank;
    const Slice span = trace.slice(block);
    const bool apart = tellsPairsApart(trace, rank);
    const bool beside = trace.lane(block.lane).info().depth > 0;
    std::map<std::string_view, KernelGroup> byName;
    TimeNs all = 0;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        if (lane.info().rank != rank || !(holdsKernels(lane.info()) || holdsOperators(lane.info()))) continue;
        if (apart && isBeside(lane.info()) != beside) continue;
        for (std::size_t i = lane.firstEndingAfter(span.begin); i < lane.size() && lane.begin(i) < span.end; ++i) {
            if (lane.begin(i) < span.begin) continue; // of the block before
            const TimeNs took = lane.end(i) - lane.begin(i);
            KernelGroup& group = byName.try_emplace(trace.text(lane.text(i)), KernelGroup{.name = lane.text(i)}).first->second;
            const auto duration = [&](SliceRef ref) { return trace.slice(ref).duration(); };
            if (group.count == 0 || took > duration(group.longest)) group.longest = {LaneId{l}, static_cast<std::uint32_t>(i)};
            ++group.count;
            group.total += took;
            all += took;
        }
    }
    std::vector<KernelGroup> groups;
    for (auto& [name, group] : byName) {
        group.share = all > 0 ? static_cast<double>(group.total) / static_cast<double>(all) : 0;
        groups.push_back(group);
    }
    std::stable_sort(groups.begin(), groups.end(), [](const KernelGroup& a, const KernelGroup& b) { return a.total > b.total; });
    return groups;
}

} // namespace stagecraft::traces
