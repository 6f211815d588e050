// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/device_blocks.h"

#include "engine/probe/tagging_allocator.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace stagecraft::runtime {

namespace {

struct Booked {
    MemoryLedger* ledger = nullptr;
    MemoryClass memory = MemoryClass::Other;
    Bytes bytes = 0;
};

// In parts, so that ranks seldom meet.
struct Part {
    std::mutex mutex; // guards blocks
    std::unordered_map<const void*, Booked> blocks;
};
constexpr std::size_t kParts = 64;

Part& partOf(const void* data)
{
    static auto* parts = new std::array<Part, kParts>; // LibTorch lets go of blocks until the process ends
    return (*parts)[(reinterpret_cast<std::uintptr_t>(data) >> 9) % kParts]; // blocks lie 512 bytes apart
}

void book(Booked& block, const AllocationTag& to)
{
    block.ledger = to.ledger;
    block.memory = to.memory;
    if (to.ledger != nullptr) to.ledger->addRegardless(to.memory, block.bytes);
}

void unbook(Booked& block)
{
    if (block.ledger != nullptr) block.ledger->remove(block.memory, block.bytes);
    block.ledger = nullptr;
}

} // namespace

void deviceBlockTaken(const void* data, Bytes bytes) noexcept
{
    Part& part = partOf(data);
    const std::lock_guard lock(part.mutex);
    Booked& block = part.blocks[data];
    unbook(block);
    block.bytes = bytes;
    book(block, currentAllocationTag());
}

void deviceBlockGone(const void* data) noexcept
{
    Part& part = partOf(data);
    const std::lock_guard lock(part.mutex);
    const auto block = part.blocks.find(data);
    if (block == part.blocks.end()) return;
    unbook(block->second);
    part.blocks.erase(block);
}

void reclassDeviceBlock(const void* data, MemoryClass memory) noexcept
{
    Part& part = partOf(data);
    const std::lock_guard lock(part.mutex);
    const auto found = part.blocks.find(data);
    if (found == part.blocks.end() || found->second.ledger == nullptr) return;
    Booked& block = found->second;
    block.ledger->move(block.memory, memory, block.bytes);
    block.memory = memory;
}

void rebookDeviceBlock(const void* data, const AllocationTag* to) noexcept
{
    Part& part = partOf(data);
    const std::lock_guard lock(part.mutex);
    const auto block = part.blocks.find(data);
    if (block == part.blocks.end()) return;
    unbook(block->second);
    if (to != nullptr) book(block->second, *to);
}

AllocationTag tagOfDeviceBlock(const void* data) noexcept
{
    Part& part = partOf(data);
    const std::lock_guard lock(part.mutex);
    const auto block = part.blocks.find(data);
    if (block == part.blocks.end()) return {};
    return {.ledger = block->second.ledger, .memory = block->second.memory};
}

} // namespace stagecraft::runtime
