// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_buffers.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace stagecraft::runtime {

// Lies before the bytes that CUPTI sees, so that a buffer leads to its owner also when the owner records no more.
struct alignas(64) ActivityBuffers::Block {
    ActivityBuffers* owner = nullptr;
    std::size_t validBytes = 0;
    State state = State::Free;

    [[nodiscard]] std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this + 1); }
    static Block* of(std::uint8_t* bytes) { return reinterpret_cast<Block*>(bytes) - 1; }
};

ActivityBuffers::ActivityBuffers(const BufferOptions& options)
    : bufferBytes_(std::max<std::size_t>((options.bufferBytes + 63) / 64 * 64, 1024)), most_(std::max<std::size_t>(options.most, 1))
{
    blocks_.reserve(most_);
    free_.reserve(most_);
    ready_.reserve(most_);
}

ActivityBuffers::~ActivityBuffers() { assert(outside_ == 0); }

ActivityBuffers::Block* ActivityBuffers::newBlock() noexcept
{
    void* memory = std::aligned_alloc(alignof(Block), sizeof(Block) + bufferBytes_);
    if (memory == nullptr) return nullptr;
    std::memset(memory, 0, sizeof(Block) + bufferBytes_);
    auto* block = new (memory) Block;
    block->owner = this;
    return block;
}

std::uint8_t* ActivityBuffers::handOut() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        if (!closed_ && !free_.empty()) {
            Block* block = free_.back();
            free_.pop_back();
            block->state = State::WithCupti;
            ++outside_;
            return block->bytes();
        }
        if (closed_ || reserved_ == most_) {
            ++refused_;
            return nullptr;
        }
        ++reserved_;
        ++outside_;
    }
    Block* block = newBlock();
    const std::scoped_lock lock(mutex_);
    if (block == nullptr) {
        --reserved_;
        ++refused_;
        if (--outside_ == 0) back_.notify_all();
        return nullptr;
    }
    block->state = State::WithCupti;
    blocks_.emplace_back(block, [](Block* each) { std::free(each); });
    return block->bytes();
}

void ActivityBuffers::giveBack(std::uint8_t* buffer, std::size_t validBytes) noexcept
{
    if (buffer == nullptr) return;
    Block& block = *Block::of(buffer);
    block.owner->take(block, validBytes);
}

void ActivityBuffers::take(Block& block, std::size_t validBytes) noexcept
{
    std::unique_lock lock(mutex_);
    if (block.state != State::WithCupti) return;
    if (--outside_ == 0) back_.notify_all();
    if (closed_) return drop(block, lock);
    block.validBytes = std::min(validBytes, bufferBytes_);
    block.state = State::Ready;
    ready_.push_back(&block);
}

std::optional<ActivityBuffers::Ready> ActivityBuffers::takeReady()
{
    const std::scoped_lock lock(mutex_);
    if (ready_.empty()) return std::nullopt;
    Block* block = ready_.front();
    ready_.erase(ready_.begin());
    block->state = State::Read;
    return Ready(block);
}

ActivityBuffers::Ready::~Ready()
{
    if (block_ != nullptr) block_->owner->free(*block_);
}

std::span<std::uint8_t> ActivityBuffers::Ready::records() const { return {block_->bytes(), block_->validBytes}; }

void ActivityBuffers::free(Block& block) noexcept
{
    // All of it: CUPTI may have written behind what it calls valid.
    std::memset(block.bytes(), 0, bufferBytes_);
    std::unique_lock lock(mutex_);
    if (closed_) return drop(block, lock);
    block.state = State::Free;
    free_.push_back(&block);
}

// Gives its memory back, without the lock.
void ActivityBuffers::drop(Block& block, std::unique_lock<std::mutex>& lock) noexcept
{
    const auto at = std::find_if(blocks_.begin(), blocks_.end(), [&](const BlockPointer& each) { return each.get() == &block; });
    assert(at != blocks_.end());
    const BlockPointer dropped = std::move(*at);
    blocks_.erase(at);
    --reserved_;
    lock.unlock();
}

bool ActivityBuffers::waitUntilAllAreBack(std::chrono::nanoseconds most)
{
    std::unique_lock lock(mutex_);
    return back_.wait_for(lock, most, [this] { return outside_ == 0; });
}

void ActivityBuffers::close()
{
    std::vector<BlockPointer> dropped;
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    free_.clear();
    ready_.clear();
    const auto kept = std::stable_partition(blocks_.begin(), blocks_.end(), [](const BlockPointer& each) {
        return each->state == State::WithCupti || each->state == State::Read;
    });
    dropped.assign(std::make_move_iterator(kept), std::make_move_iterator(blocks_.end()));
    blocks_.erase(kept, blocks_.end());
    reserved_ -= dropped.size();
}

std::size_t ActivityBuffers::outside() const
{
    const std::scoped_lock lock(mutex_);
    return outside_;
}

std::size_t ActivityBuffers::allocated() const
{
    const std::scoped_lock lock(mutex_);
    return blocks_.size();
}

std::int64_t ActivityBuffers::refused() const
{
    const std::scoped_lock lock(mutex_);
    return refused_;
}

} // namespace stagecraft::runtime
