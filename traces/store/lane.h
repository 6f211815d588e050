// SPDX-License-Identifier: Apache-2.0
//
// A lane: one row of a timeline, holding slices in the order of time that do not overlap. Slices lie in columns, in
// chunks of kChunkSlices that never change once full (sealed): a copy of a lane shares them and copies only the open
// tail, so a background job works on a snapshot while the owner appends. Not thread-safe otherwise.
//
// Beside the slices runs an index of level-of-detail: the busy time by paint class up to every kBlockSlices-th slice.
// occupancyUntil() is therefore O(log n), and what a pixel column shows is its true occupancy, not a sample.
//
//   Lane lane({.rank = Rank{0}, .kind = LaneKind::Compute, .name = "rank 0"});
//   lane.append({.begin = 0, .end = 1000, .action = forward(Stage{0}, MicroBatch{0})});
//   for (std::size_t i = lane.firstEndingAfter(t0); i < lane.size() && lane.begin(i) < t1; ++i) draw(lane.slice(i));
#pragma once

#include "traces/base/action.h"
#include "traces/base/units.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace stagecraft::traces {

enum class LaneKind : std::uint8_t {
    Compute,    // what the rank executes: forward, backward, optimizer
    Transfer,   // hand-offs that this rank sends, one slice from the producer's end to the arrival
    Stream,     // a device stream or another row of an imported trace
    Copy,       // activations that go to the host or to another rank for keeping, and come back
    Collective, // all-gather, reduce-scatter and all-reduce of weights and gradients among data-parallel replicas
};
inline constexpr LaneKind kLastLaneKind = LaneKind::Collective;

struct LaneInfo {
    Rank rank{};
    LaneKind kind = LaneKind::Compute;
    std::int32_t depth = 0; // among lanes of one rank and kind (transfers in flight at the same time)
    std::string name;

    bool operator==(const LaneInfo&) const = default;
};

struct Slice {
    TimeNs begin = 0;
    TimeNs end = 0;
    Action action{};
    Step step{};
    TextId text{}; // names a slice whose action is None

    [[nodiscard]] TimeNs duration() const { return end - begin; }
    bool operator==(const Slice&) const = default;
};

// Groups of action kinds that one look stands for.
enum class PaintClass : std::uint8_t {
    Forward,
    Backward,
    InputGrad,
    WeightGrad,
    Overlap,
    Transfer, // to another stage
    Optimizer,
    Other,
    // From here on without sums of their own in a lane's index.
    Recompute,
    Copy,       // activations off the rank and back
    Collective, // weights and gradients among data-parallel replicas
};
inline constexpr std::size_t kPaintClassCount = 11;
// By ActionKind.
inline constexpr std::array<PaintClass, kActionKindCount> kPaintClasses{
    PaintClass::Other,      // None
    PaintClass::Forward,    PaintClass::Backward, PaintClass::InputGrad, PaintClass::WeightGrad, PaintClass::Overlap,
    PaintClass::Transfer,   PaintClass::Transfer, PaintClass::Transfer,  PaintClass::Transfer,   // SEND, RECV
    PaintClass::Recompute,
    PaintClass::Copy,       PaintClass::Copy,       // Offload, Reload
    PaintClass::Collective, PaintClass::Collective, // Unshard, Reshard
    PaintClass::Collective, PaintClass::Collective, // ReduceGrad, AllReduce
    PaintClass::Optimizer,
};
constexpr PaintClass paintClass(ActionKind kind) { return kPaintClasses[static_cast<std::size_t>(kind)]; }
static_assert(paintClass(ActionKind::Recompute) == PaintClass::Recompute && paintClass(ActionKind::Reshard) == PaintClass::Collective &&
              paintClass(ActionKind::AllReduce) == PaintClass::Collective && paintClass(ActionKind::Optimizer) == PaintClass::Optimizer);

// The sums of a lane's index fill a cache line, which is what a view of a whole trace waits for. So the last classes share the
// sum of another, which they seldom lie beside: where sixteen slices are one pixel, a recomputation looks like a forward.
inline constexpr std::size_t kSummedClassCount = 8;
inline constexpr std::array<std::uint8_t, kPaintClassCount> kSummedWith{
    0, 1, 2, 3, 4, 5, 6, 7, static_cast<std::uint8_t>(PaintClass::Forward), static_cast<std::uint8_t>(PaintClass::Transfer),
    static_cast<std::uint8_t>(PaintClass::Transfer)};
constexpr std::size_t summedWith(PaintClass paint) { return kSummedWith[static_cast<std::size_t>(paint)]; }

// Busy nanoseconds by PaintClass, of those that have a sum.
using Occupancy = std::array<TimeNs, kSummedClassCount>;

class Lane {
public:
    static constexpr std::size_t kChunkSlices = 4096;
    static constexpr std::size_t kBlockSlices = 16;
    static constexpr std::size_t kChunkBlocks = kChunkSlices / kBlockSlices;

    explicit Lane(LaneInfo info);
    Lane(const Lane& other); // shares sealed chunks, copies the open one
    Lane& operator=(const Lane& other);
    Lane(Lane&&) noexcept = default;
    Lane& operator=(Lane&&) noexcept = default;
    ~Lane() = default;

    [[nodiscard]] const LaneInfo& info() const { return info_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }

    // Precondition: slice.begin >= the end of the last slice, slice.end >= slice.begin. canAppend() tells.
    void append(const Slice& slice)
    {
        const std::size_t k = size_ % kChunkSlices;
        if (k == 0) openChunk();
        SliceChunk& c = *open_;
        if (k % kBlockSlices == 0) {
            c.before[k / kBlockSlices].busy = c.total;
            c.blockBegin[k / kBlockSlices] = slice.begin;
        }
        const PaintClass paint = paintClass(slice.action.kind());
        c.begin[k] = slice.begin;
        c.end[k] = slice.end;
        c.paint[k] = paint;
        c.payload.push_back({slice.action, slice.step, slice.text});
        c.total[summedWith(paint)] += slice.end - slice.begin;
        paints_ |= static_cast<std::uint16_t>(static_cast<unsigned>(slice.end > slice.begin) << static_cast<unsigned>(paint));
        lastEnd_ = slice.end;
        ++size_;
    }
    [[nodiscard]] bool canAppend(const Slice& slice) const
    {
        return slice.end >= slice.begin && (size_ == 0 || slice.begin >= lastEnd_);
    }

    [[nodiscard]] TimeNs begin(std::size_t i) const { return chunk(i).begin[i % kChunkSlices]; }
    [[nodiscard]] TimeNs end(std::size_t i) const { return chunk(i).end[i % kChunkSlices]; }
    [[nodiscard]] const Action& action(std::size_t i) const { return chunk(i).payload[i % kChunkSlices].action; }
    [[nodiscard]] Step step(std::size_t i) const { return chunk(i).payload[i % kChunkSlices].step; }
    [[nodiscard]] TextId text(std::size_t i) const { return chunk(i).payload[i % kChunkSlices].text; }
    [[nodiscard]] Slice slice(std::size_t i) const;
    [[nodiscard]] TimeNs lastEnd() const { return lastEnd_; } // 0 when empty

    // Index of the first slice with end > t; size() if none. `from` is a lower bound known to the caller: the search
    // gallops from there, so a left-to-right sweep costs O(1) a step.
    [[nodiscard]] std::size_t firstEndingAfter(TimeNs t, std::size_t from = 0) const;

    // Busy time by class from the start of the lane until t; `slice` is firstEndingAfter(t).
    [[nodiscard]] Occupancy occupancyUntil(TimeNs t, std::size_t slice) const;

    // For views that go through many slices: the columns from slice i to the end of its chunk.
    struct Columns {
        const TimeNs* begin = nullptr;
        const TimeNs* end = nullptr;
        const PaintClass* paint = nullptr;
        std::size_t size = 0;
    };
    [[nodiscard]] Columns columnsFrom(std::size_t i) const;

    // The index itself, for views of which a pixel is wider than a block: block k holds the slices from k * kBlockSlices on.
    // Since busy times are sums from the lane's start, every n-th block is an index of blocks n times as long.
    [[nodiscard]] std::size_t blockCount() const { return (size_ + kBlockSlices - 1) / kBlockSlices; }
    [[nodiscard]] TimeNs blockBegin(std::size_t k) const { return chunk(k * kBlockSlices).blockBegin[k % kChunkBlocks]; }
    [[nodiscard]] const Occupancy& busyBefore(std::size_t k) const { return chunk(k * kBlockSlices).before[k % kChunkBlocks].busy; }
    // The last of the blocks `from`, `from` + stride, ... that begins at or before t; `from` where none does.
    [[nodiscard]] std::size_t blockAt(TimeNs t, std::size_t from, std::size_t stride = 1) const;
    // Busy time of the whole lane.
    [[nodiscard]] Occupancy busy() const { return open_ ? open_->total : Occupancy{}; }
    // Whether any of its slices is of this class and takes time.
    [[nodiscard]] bool has(PaintClass paint) const { return (paints_ >> static_cast<unsigned>(paint) & 1U) != 0; }

    [[nodiscard]] std::size_t memoryBytes() const;

private:
    struct Payload {
        Action action;
        Step step;
        TextId text;
    };
    struct alignas(64) Before { // a cache line each: views of a whole trace wait for little else
        Occupancy busy;
    };
    // Columns of fixed length: a writer of many lanes in turn (a simulation of 64 ranks) touches the ends of the columns, and
    // must not have to look up where each of them ends as well; that no longer fits the nearest cache.
    struct SliceChunk {
        SliceChunk();
        SliceChunk(const SliceChunk& other, std::size_t slices); // the first ones of it
        std::unique_ptr<TimeNs[]> begin;
        std::unique_ptr<TimeNs[]> end;
        std::unique_ptr<PaintClass[]> paint;
        std::unique_ptr<TimeNs[]> blockBegin; // one per block: of its first slice, close together for the search
        std::unique_ptr<Before[]> before;     // one per block: busy time before its first slice
        std::vector<Payload> payload;
        Occupancy total{}; // busy time up to the last slice of this chunk
    };

    [[nodiscard]] const SliceChunk& chunk(std::size_t i) const { return *chunks_[i / kChunkSlices]; }
    void openChunk();

    LaneInfo info_;
    std::vector<std::shared_ptr<SliceChunk>> chunks_;
    SliceChunk* open_ = nullptr; // == chunks_.back().get()
    std::size_t size_ = 0;
    TimeNs lastEnd_ = 0;
    std::uint16_t paints_ = 0; // a bit by PaintClass
};

} // namespace stagecraft::traces
