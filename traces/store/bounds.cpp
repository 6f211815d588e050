// SPDX-License-Identifier: Apache-2.0
#include "traces/store/bounds.h"

#include <algorithm>

namespace stagecraft::traces {
namespace {

Error outside(std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most)
{
    return Error{std::string(what) + " " + std::to_string(value) + " is out of range; " + std::to_string(least) + " to " +
                 std::to_string(most) + " is possible"};
}

Expected<void> within(std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most)
{
    if (value >= least && value <= most) return {};
    return outside(what, value, least, most);
}

Expected<void> checkRank(Rank rank) { return within("rank", rank.value, 0, kMostRank - 1); }

} // namespace

Expected<void> checkTime(TimeNs time) { return within("a time of", time, -kMostTime, kMostTime); }

Expected<void> checkBounds(Interval interval)
{
    if (Expected<void> begin = checkTime(interval.begin); !begin.ok()) return begin;
    if (Expected<void> end = checkTime(interval.end); !end.ok()) return end;
    return within("a duration of", interval.length(), 0, 2 * kMostTime - 1);
}

Expected<void> checkBounds(const ClockReading& reading)
{
    if (Expected<void> rank = checkRank(reading.rank); !rank.ok()) return rank;
    for (const TimeNs time : {reading.at, reading.offset})
        if (Expected<void> ok = checkTime(time); !ok.ok()) return ok;
    return within("the error of a clock of", reading.error, 0, kMostTime);
}

Expected<void> checkBounds(const TraceInfo& info)
{
    if (Expected<void> ranks = within("the number of ranks", info.ranks, 0, kMostRank); !ranks.ok()) return ranks;
    if (Expected<void> chunks = within("the number of chunks", info.chunks, 0, kMostRank); !chunks.ok()) return chunks;
    if (info.microbatches < 0) return outside("the number of micro-batches", info.microbatches, 0, INT32_MAX);
    if (Expected<void> slices = within("the number of slices of a sequence", info.slices, 1, INT32_MAX); !slices.ok()) return slices;
    if (Expected<void> limit = within("the bytes that a rank may hold", info.memoryLimit, 0, kMostBytes); !limit.ok()) return limit;
    for (const std::vector<Rank>* placement : {&info.stageToRank, &info.upStageToRank})
        for (const Rank rank : *placement)
            if (Expected<void> ok = checkRank(rank); !ok.ok()) return ok;
    return {};
}

Expected<void> checkBounds(const LaneInfo& lane)
{
    if (Expected<void> rank = checkRank(lane.rank); !rank.ok()) return rank;
    return within("the depth of a lane", lane.depth, 0, kMostRank);
}

Expected<void> checkBounds(const Slice& slice)
{
    if (Expected<void> span = checkBounds(Interval{slice.begin, slice.end}); !span.ok()) return span;
    if (slice.step.value < 0) return outside("step", slice.step.value, 0, INT32_MAX);
    for (const Work& work : {slice.action.work, slice.action.partner})
        if (work.stage.value < 0 || work.microbatch.value < kNoMicroBatch.value)
            return Error{"an action names stage " + std::to_string(work.stage.value) + " and micro-batch " +
                         std::to_string(work.microbatch.value) + "; both count from 0"};
    return {};
}

Expected<void> checkBounds(const Gpu& gpu)
{
    for (const Rank rank : gpu.ranks)
        if (Expected<void> ok = checkRank(rank); !ok.ok()) return ok;
    if (gpu.number < 0) return outside("the number of a GPU,", gpu.number, 0, INT32_MAX);
    return within("the memory of a GPU of", gpu.total, 0, kMostBytes);
}

Expected<void> checkBounds(TimeNs time, const GpuMemory& memory)
{
    if (Expected<void> ok = checkTime(time); !ok.ok()) return ok;
    for (const Bytes bytes : {memory.active, memory.reserved, memory.used})
        if (Expected<void> ok = within("a memory of", bytes, 0, kMostBytes); !ok.ok()) return ok;
    return {};
}

Expected<void> checkMemory(Rank rank, TimeNs time, Bytes value)
{
    if (Expected<void> ok = checkRank(rank); !ok.ok()) return ok;
    if (Expected<void> ok = checkTime(time); !ok.ok()) return ok;
    return within("a memory of", value, -kMostBytes, kMostBytes);
}

} // namespace stagecraft::traces
