// SPDX-License-Identifier: Apache-2.0
//
// From what a device did to the sub-lanes of its ranks: a lane of kind Stream per stream, with a slice per kernel, copy and
// memset, named as such and with its step. A slice of a trace that names a kernel cannot name its action as well: for that
// see ActionSpans. What nobody marked lies on a lane of its own, and is counted; NCCL's kernels, which it launches by itself, on another
// (traces/analysis/exchanges.h tells their hand-offs); the host's waits and, where they are asked for, its calls and what it took of the
// driver's memory (memory_operations.h) have lanes too. Beside each stream lies a lane of its gaps, with why it stood still (stream_gaps.h), where the
// launches are recorded. What comes too late for its lane, because its buffer was held up, lies on a further one.
// One thread.
//
//   DeviceLanes lanes(ranks, numbers);             // numbers: of the stream of records that it writes into
//   lanes.addNames(batch.newNames);
//   for (const JoinedActivity& each : joined) lanes.add(each);
//   lanes.flush(records);                          // after every batch
#pragma once

#include "engine/probe/cupti/device_place_ranks.h"
#include "engine/probe/cupti/stream_gaps.h"
#include "traces/store/record.h"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// Lanes and texts of a stream of records are numbered in its order, over all who write into it.
class RecordNumbers {
public:
    virtual ~RecordNumbers() = default;
    virtual traces::LaneId addLane(traces::LaneInfo info, std::vector<traces::Record>& out) = 0;
    virtual traces::TextId addText(std::string text, std::vector<traces::Record>& out) = 0;
};

// Of a stream that nobody else writes into.
class OwnRecordNumbers final : public RecordNumbers {
public:
    traces::LaneId addLane(traces::LaneInfo info, std::vector<traces::Record>& out) override;
    traces::TextId addText(std::string text, std::vector<traces::Record>& out) override;

private:
    std::uint32_t lanes_ = 0;
    std::uint32_t texts_ = 0;
};

struct DeviceLaneOptions {
    bool calls = false;    // a lane per thread, of its calls of CUDA
    bool overhead = false; // a lane of what CUPTI and the driver took for themselves
};

class DeviceLanes {
public:
    // Both stay where they are.
    DeviceLanes(DevicePlaceRanks& ranks, RecordNumbers& numbers, const DeviceLaneOptions& options = {})
        : ranks_(ranks), numbers_(numbers), options_(options)
    {
    }

    void addNames(const std::vector<std::string>& newNames) { names_.insert(names_.end(), newNames.begin(), newNames.end()); }
    void add(const JoinedActivity& joined);
    // Slices of each lane in their order; whatever has been added is out.
    void flush(std::vector<traces::Record>& out);

    [[nodiscard]] std::int64_t unattributed() const { return unattributed_; } // kernels, copies and memsets that nobody marked, without NCCL's
    [[nodiscard]] std::int64_t late() const { return late_; }                 // slices on further lanes

private:
    enum class Row : std::uint8_t { Stream, Beside, Unattributed, Nccl, Gaps, Waits, Calls, Memory, Overhead };
    struct RowKey {
        traces::Rank rank{};
        Row row = Row::Stream;
        DevicePlace place;        // of Stream to Gaps; of Memory the device alone
        std::uint32_t thread = 0; // of Calls
        auto operator<=>(const RowKey&) const = default;
    };
    struct PendingSlice {
        traces::Interval span;
        traces::Step step{};
        std::string_view text; // of names_, or a literal
    };
    struct PendingWork {
        StreamWork work;
        traces::Rank rank{};
        traces::Step step{};
    };
    struct Stream {
        DevicePlace place;
        StreamGaps gaps;
        std::vector<PendingWork> pending;
    };
    struct LaneEnd {
        traces::LaneId id{};
        traces::TimeNs lastEnd = 0;
    };
    struct RowLanes {
        std::vector<PendingSlice> pending;
        std::vector<LaneEnd> lanes; // the first, and further ones for what comes late
    };

    void addTo(const Attribution& whose, const KernelActivity& kernel);
    void addTo(const Attribution& whose, const CopyActivity& copy);
    void addTo(const Attribution& whose, const PeerCopyActivity& copy);
    void addTo(const Attribution& whose, const MemsetActivity& memset);
    void addTo(const Attribution& whose, const SyncActivity& wait);
    void addTo(const Attribution& whose, const ApiActivity& call);
    void addTo(const Attribution& whose, const MemoryActivity& memory) { addMemory(whose, memory, {memory.at, memory.at}); }
    void addTo(const Attribution& whose, const OverheadActivity& overhead);
    void addTo(const Attribution&, const CorrelationActivity&) {} // the join has used it
    void addMemory(const Attribution& whose, const MemoryActivity& memory, traces::Interval span);
    template <class Activity>
    void addToStream(const Attribution& whose, const Activity& activity, std::string_view text);
    void put(const RowKey& key, const Attribution& whose, traces::Interval span, std::string_view text);
    void put(const RowKey& key, traces::Step step, traces::Interval span, std::string_view text);
    Stream& streamOf(std::uint32_t context, std::uint32_t stream) { return streams_[{context, stream}]; } // no two devices' contexts have one number
    void putGaps(Stream& stream);
    [[nodiscard]] std::string_view nameOf(NameId name, std::string_view otherwise) const;
    std::string_view peerCopyName(const PeerCopyActivity& copy);
    LaneEnd& laneFor(const RowKey& key, RowLanes& row, traces::TimeNs begin, std::vector<traces::Record>& out);
    traces::TextId textOf(std::string_view text, std::vector<traces::Record>& out);
    static std::string rowName(const RowKey& key);

    DevicePlaceRanks& ranks_;
    RecordNumbers& numbers_;
    DeviceLaneOptions options_;
    std::deque<std::string> names_; // by NameId, from 1; stay where they are
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> peerCopies_; // their names, by the two devices
    std::set<std::string> memoryTexts_; // of what was done to memory
    std::map<RowKey, RowLanes> rows_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Stream> streams_; // by context and number
    std::map<traces::Rank, std::int32_t> depths_; // lanes of each rank so far
    std::unordered_map<const char*, traces::TextId> texts_; // by address: each name stays at its own
    std::pair<const RowKey, RowLanes>* last_ = nullptr;     // most activities lie on the lane of the one before
    std::int64_t unattributed_ = 0;
    std::int64_t late_ = 0;
};

} // namespace stagecraft::runtime
