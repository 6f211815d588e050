// SPDX-License-Identifier: Apache-2.0
#include "traces/store/lane.h"

#include <algorithm>

namespace stagecraft::traces {

Lane::SliceChunk::SliceChunk()
    : begin(std::make_unique_for_overwrite<TimeNs[]>(kChunkSlices)), end(std::make_unique_for_overwrite<TimeNs[]>(kChunkSlices)),
      paint(std::make_unique_for_overwrite<PaintClass[]>(kChunkSlices)),
      blockBegin(std::make_unique_for_overwrite<TimeNs[]>(kChunkBlocks)),
      before(std::make_unique_for_overwrite<Before[]>(kChunkBlocks))
{
    payload.reserve(kChunkSlices);
}

Lane::SliceChunk::SliceChunk(const SliceChunk& other, std::size_t slices) : SliceChunk()
{
    const std::size_t blocks = (slices + kBlockSlices - 1) / kBlockSlices;
    std::copy_n(other.begin.get(), slices, begin.get());
    std::copy_n(other.end.get(), slices, end.get());
    std::copy_n(other.paint.get(), slices, paint.get());
    std::copy_n(other.blockBegin.get(), blocks, blockBegin.get());
    std::copy_n(other.before.get(), blocks, before.get());
    payload.assign(other.payload.begin(), other.payload.begin() + static_cast<std::ptrdiff_t>(slices));
    total = other.total;
}

Lane::Lane(LaneInfo info) : info_(std::move(info)) {}

Lane::Lane(const Lane& other)
    : info_(other.info_), chunks_(other.chunks_), size_(other.size_), lastEnd_(other.lastEnd_), paints_(other.paints_)
{
    if (size_ % kChunkSlices != 0) {
        chunks_.back() = std::make_shared<SliceChunk>(*other.chunks_.back(), size_ % kChunkSlices);
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
    Occupancy sum = c.before[block].busy;
    for (std::size_t i = block * kBlockSlices; i < k; ++i)
        sum[summedWith(c.paint[i])] += c.end[i] - c.begin[i];
    if (c.begin[k] < t) sum[summedWith(c.paint[k])] += t - c.begin[k];
    return sum;
}

Lane::Columns Lane::columnsFrom(std::size_t i) const
{
    if (i >= size_) return {};
    const SliceChunk& c = chunk(i);
    const std::size_t k = i % kChunkSlices;
    return {c.begin.get() + k, c.end.get() + k, c.paint.get() + k, c.payload.size() - k};
}

std::size_t Lane::blockAt(TimeNs t, std::size_t from, std::size_t stride) const
{
    const std::size_t count = blockCount();
    std::size_t low = from; // begins at or before t, or is the caller's bound
    std::size_t step = stride;
    while (low + step < count && blockBegin(low + step) <= t) {
        low += step;
        step *= 2;
    }
    // Of low and high, only low begins at or before t; step is a multiple of stride, and halves down to it.
    for (; step > stride; step /= 2) {
        const std::size_t middle = low + step / 2;
        if (middle < count && blockBegin(middle) <= t) low = middle;
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
