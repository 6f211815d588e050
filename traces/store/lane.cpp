// SPDX-License-Identifier: Apache-2.0
#include "traces/store/lane.h"

#include <algorithm>

namespace stagecraft::traces {

PaintClass paintClass(ActionKind kind)
{
    switch (kind) {
    case ActionKind::Forward:
    case ActionKind::Recompute: return PaintClass::Forward;
    case ActionKind::Backward: return PaintClass::Backward;
    case ActionKind::InputGrad: return PaintClass::InputGrad;
    case ActionKind::WeightGrad: return PaintClass::WeightGrad;
    case ActionKind::Overlap: return PaintClass::Overlap;
    case ActionKind::SendForward:
    case ActionKind::RecvForward:
    case ActionKind::SendBackward:
    case ActionKind::RecvBackward:
    case ActionKind::Offload:
    case ActionKind::Reload:
    case ActionKind::Unshard:
    case ActionKind::Reshard: return PaintClass::Transfer;
    case ActionKind::ReduceGrad:
    case ActionKind::AllReduce:
    case ActionKind::Optimizer: return PaintClass::Optimizer;
    case ActionKind::None: break;
    }
    return PaintClass::Other;
}

Lane::SliceChunk::SliceChunk()
{
    begin.reserve(kChunkSlices);
    end.reserve(kChunkSlices);
    payload.reserve(kChunkSlices);
    paint.reserve(kChunkSlices);
    blockBegin.reserve(kChunkBlocks);
    before.reserve(kChunkBlocks);
}

Lane::Lane(LaneInfo info) : info_(std::move(info)) {}

Lane::Lane(const Lane& other)
    : info_(other.info_), chunks_(other.chunks_), size_(other.size_), lastEnd_(other.lastEnd_)
{
    if (size_ % kChunkSlices != 0) {
        // vector's copy gives back the reserve, which append() relies on only for speed
        chunks_.back() = std::make_shared<SliceChunk>(*other.chunks_.back());
        open_ = chunks_.back().get();
    }
}

Lane& Lane::operator=(const Lane& other)
{
    if (this != &other) *this = Lane(other);
    return *this;
}

void Lane::openChunk()
{
    auto fresh = std::make_shared<SliceChunk>();
    if (!chunks_.empty()) fresh->total = chunks_.back()->total;
    chunks_.push_back(std::move(fresh));
    open_ = chunks_.back().get();
}

void Lane::append(const Slice& slice)
{
    if (size_ % kChunkSlices == 0) openChunk();
    SliceChunk& c = *open_;
    if (size_ % kBlockSlices == 0) {
        c.before.push_back(c.total);
        c.blockBegin.push_back(slice.begin);
    }
    c.begin.push_back(slice.begin);
    c.end.push_back(slice.end);
    c.payload.push_back({slice.action, slice.step, slice.text});
    c.paint.push_back(paintClass(slice.action.kind()));
    c.total[static_cast<std::size_t>(c.paint.back())] += slice.end - slice.begin;
    lastEnd_ = slice.end;
    ++size_;
}

Slice Lane::slice(std::size_t i) const
{
    const SliceChunk& c = chunk(i);
    const std::size_t k = i % kChunkSlices;
    return Slice{c.begin[k], c.end[k], c.payload[k].action, c.payload[k].step, c.payload[k].text};
}

std::size_t Lane::firstEndingAfter(TimeNs t, std::size_t from) const
{
    if (from >= size_ || end(from) > t) return std::min(from, size_);
    std::size_t low = from; // end(low) <= t
    std::size_t step = 1;
    while (low + step < size_ && end(low + step) <= t) {
        low += step;
        step *= 2;
    }
    std::size_t high = std::min(low + step, size_); // end(high) > t, or size_
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (end(middle) <= t ? low : high) = middle;
    }
    return high;
}

Occupancy Lane::occupancyUntil(TimeNs t, std::size_t slice) const
{
    if (size_ == 0) return {};
    if (slice >= size_) return chunks_.back()->total;
    const SliceChunk& c = chunk(slice);
    const std::size_t k = slice % kChunkSlices;
    const std::size_t block = k / kBlockSlices;
    Occupancy sum = c.before[block];
    for (std::size_t i = block * kBlockSlices; i < k; ++i)
        sum[static_cast<std::size_t>(c.paint[i])] += c.end[i] - c.begin[i];
    if (c.begin[k] < t) sum[static_cast<std::size_t>(c.paint[k])] += t - c.begin[k];
    return sum;
}

Lane::Columns Lane::columnsFrom(std::size_t i) const
{
    if (i >= size_) return {};
    const SliceChunk& c = chunk(i);
    const std::size_t k = i % kChunkSlices;
    return {c.begin.data() + k, c.end.data() + k, c.paint.data() + k, c.begin.size() - k};
}

std::size_t Lane::blockAt(TimeNs t, std::size_t from) const
{
    const std::size_t count = blockCount();
    std::size_t low = from; // begins at or before t, or is the caller's bound
    std::size_t step = 1;
    while (low + step < count && blockBegin(low + step) <= t) {
        low += step;
        step *= 2;
    }
    std::size_t high = std::min(low + step, count);
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (blockBegin(middle) <= t ? low : high) = middle;
    }
    return low;
}

std::size_t Lane::memoryBytes() const
{
    const std::size_t chunkBytes = kChunkSlices * (2 * sizeof(TimeNs) + sizeof(Payload) + sizeof(PaintClass)) +
                                   kChunkBlocks * (sizeof(Occupancy) + sizeof(TimeNs)) + sizeof(SliceChunk);
    return chunks_.size() * chunkBytes + sizeof(Lane);
}

} // namespace stagecraft::traces
