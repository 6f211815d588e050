// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/tagging_allocator.h"

#include "engine/probe/block_cache.h"
#include "engine/probe/device_blocks.h"
#include "engine/probe/last_use.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <mutex>
#include <new>

namespace stagecraft::runtime {

namespace {

thread_local constinit AllocationTag current;

// Before every block; data follows at the next 64-byte border, as vector instructions like it.
struct alignas(64) BlockHeader {
    MemoryLedger* ledger;
    Bytes bytes;
    std::uint32_t sizeClass;
    MemoryClass memory;
};
static_assert(sizeof(BlockHeader) == 64);

BlockHeader* headerOf(void* data) { return static_cast<BlockHeader*>(data) - 1; }

void freeBlock(void* data)
{
    if (data == nullptr) return;
    freed(data);
    BlockHeader* header = headerOf(data);
    if (header->ledger != nullptr) header->ledger->remove(header->memory, header->bytes);
    BlockCache::give({header, header->sizeClass});
}

class TaggingAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override
    {
        const c10::Device cpu(c10::DeviceType::CPU);
        if (bytes == 0) return {nullptr, nullptr, &freeBlock, cpu};
        MemoryLedger* const ledger = current.ledger;
        if (ledger != nullptr && !ledger->add(current.memory, static_cast<Bytes>(bytes)))
            TORCH_CHECK_WITH(OutOfMemoryError, false, ledger->refusal(static_cast<Bytes>(bytes)));
        const bool fails = current.failIn > 0 && --current.failIn == 0;
        const Block block = fails || bytes > SIZE_MAX / 2 ? Block{} : BlockCache::take(bytes + sizeof(BlockHeader));
        if (block.memory == nullptr) {
            if (ledger != nullptr) ledger->remove(current.memory, static_cast<Bytes>(bytes));
            TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory for ", bytes, " bytes",
                             fails ? " (failure injected)" : "");
        }
        auto* header = new (block.memory)
            BlockHeader{ledger, static_cast<Bytes>(bytes), block.sizeClass, current.memory};
        void* data = header + 1;
        return {data, data, &freeBlock, cpu};
    }

    c10::DeleterFnPtr raw_deleter() const override { return &freeBlock; }

    void copy_data(void* target, const void* source, std::size_t bytes) const override
    {
        default_copy_data(target, source, bytes);
    }
};

} // namespace

void installTaggingAllocator()
{
    static std::once_flag once;
    std::call_once(once, [] {
        static auto* allocator = new TaggingAllocator; // LibTorch may use it until the process ends
        c10::SetAllocator(c10::DeviceType::CPU, allocator, /*priority=*/1);
    });
}

AllocationScope::AllocationScope(const AllocationTag& tag) : outer_(current) { current = tag; }
AllocationScope::~AllocationScope() { current = outer_; }

const AllocationTag& currentAllocationTag() noexcept { return current; }

void reclass(const c10::DataPtr& block, MemoryClass memory)
{
    if (block.get() == nullptr) return;
    if (!block.device().is_cpu()) return reclassDeviceBlock(block.get(), memory);
    BlockHeader* header = headerOf(block.get());
    if (header->ledger == nullptr || header->memory == memory) return;
    header->ledger->move(header->memory, memory, header->bytes);
    header->memory = memory;
}

void disown(const c10::DataPtr& block)
{
    if (block.get() == nullptr) return;
    if (!block.device().is_cpu()) return rebookDeviceBlock(block.get(), nullptr);
    BlockHeader* header = headerOf(block.get());
    if (header->ledger == nullptr) return;
    header->ledger->remove(header->memory, header->bytes);
    header->ledger = nullptr;
}

void rebook(const c10::DataPtr& block, const AllocationTag& to)
{
    if (block.get() == nullptr) return;
    if (!block.device().is_cpu()) return rebookDeviceBlock(block.get(), &to);
    BlockHeader* header = headerOf(block.get());
    if (!to.ledger->add(to.memory, header->bytes)) TORCH_CHECK_WITH(OutOfMemoryError, false, to.ledger->refusal(header->bytes));
    disown(block);
    header->ledger = to.ledger;
    header->memory = to.memory;
}

std::optional<AllocationTag> tagOf(const c10::DataPtr& block)
{
    if (block.get() == nullptr) return std::nullopt;
    if (!block.device().is_cpu()) return tagOfDeviceBlock(block.get());
    if (block.get_deleter() != &freeBlock) return std::nullopt;
    const BlockHeader* header = headerOf(block.get());
    return AllocationTag{.ledger = header->ledger, .memory = header->memory};
}

} // namespace stagecraft::runtime
