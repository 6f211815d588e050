// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/block_cache.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

namespace stagecraft::runtime {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kFirstShift = 7; // the smallest class holds 128 bytes
constexpr std::uint32_t kStepsPerDoubling = 8;
constexpr std::uint32_t kClassCount = (48 - kFirstShift) * kStepsPerDoubling;
constexpr std::size_t kThreadBlockLimit = std::size_t{16} << 10; // larger blocks are shared: their work hides a lock
constexpr std::size_t kThreadLimit = std::size_t{1} << 20;       // of one thread's lists
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct FreeBlock {
    FreeBlock* next;
};

void* fromKernel(std::size_t bytes) noexcept
{
    void* memory = nullptr;
    const bool huge = bytes >= kHugePage;
    if (posix_memalign(&memory, huge ? kHugePage : kAlignment, bytes) != 0) return nullptr;
    if (huge) madvise(memory, bytes, MADV_HUGEPAGE); // a wish; nothing depends on it
    return memory;
}

void toKernel(void* memory) noexcept { std::free(memory); }

// A free block holds nothing but its link; the sanitizer is told so, or the cache would hide every use after free.
FreeBlock* asFree(void* memory, std::size_t bytes) noexcept
{
    ASAN_POISON_MEMORY_REGION(static_cast<char*>(memory) + sizeof(FreeBlock), bytes - sizeof(FreeBlock));
    static_cast<void>(bytes);
    return new (memory) FreeBlock{nullptr};
}

void* asUsed(FreeBlock* block, std::size_t bytes) noexcept
{
    ASAN_UNPOISON_MEMORY_REGION(block, bytes);
    static_cast<void>(bytes);
    return block;
}

std::size_t defaultLimit() noexcept
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long pageSize = sysconf(_SC_PAGESIZE);
    constexpr std::size_t kMost = std::size_t{2} << 30;
    if (pages <= 0 || pageSize <= 0) return kMost / 4;
    const std::size_t quarter = static_cast<std::size_t>(pages) * static_cast<std::size_t>(pageSize) / 4;
    return quarter < kMost ? quarter : kMost;
}

class SharedList {
public:
    void* take(std::uint32_t sizeClass) noexcept
    {
        const std::lock_guard lock(mutex_);
        FreeBlock* block = lists_[sizeClass];
        if (block == nullptr) return nullptr;
        lists_[sizeClass] = block->next;
        kept_ -= BlockCache::classBytes(sizeClass);
        return asUsed(block, BlockCache::classBytes(sizeClass));
    }

    void give(FreeBlock* block, std::uint32_t sizeClass) noexcept
    {
        const std::size_t bytes = BlockCache::classBytes(sizeClass);
        {
            const std::lock_guard lock(mutex_);
            if (kept_ + bytes <= limit_) {
                block->next = lists_[sizeClass];
                lists_[sizeClass] = block;
                kept_ += bytes;
                return;
            }
        }
        toKernel(asUsed(block, bytes));
    }

    void trim() noexcept
    {
        std::array<FreeBlock*, kClassCount> freed{};
        {
            const std::lock_guard lock(mutex_);
            freed.swap(lists_);
            kept_ = 0;
        }
        for (std::uint32_t c = 0; c < kClassCount; ++c) {
            while (FreeBlock* block = freed[c]) {
                freed[c] = block->next;
                toKernel(asUsed(block, BlockCache::classBytes(c)));
            }
        }
    }

    void setLimit(std::size_t bytes) noexcept
    {
        const std::lock_guard lock(mutex_);
        limit_ = bytes;
    }

    std::size_t kept() noexcept
    {
        const std::lock_guard lock(mutex_);
        return kept_;
    }

private:
    std::mutex mutex_; // guards all below
    std::array<FreeBlock*, kClassCount> lists_{};
    std::size_t kept_ = 0;
    std::size_t limit_ = defaultLimit();
};

// Never destroyed: tensors of static objects may be freed after every destructor of this file.
SharedList& shared()
{
    static auto* list = new SharedList;
    return *list;
}

struct ThreadLists {
    std::array<FreeBlock*, kClassCount> lists{};
    std::size_t kept = 0;

    void flush(std::uint32_t sizeClass) noexcept
    {
        while (FreeBlock* block = lists[sizeClass]) {
            lists[sizeClass] = block->next;
            kept -= BlockCache::classBytes(sizeClass);
            shared().give(block, sizeClass);
        }
    }
    void flushAll() noexcept
    {
        for (std::uint32_t c = 0; c < kClassCount; ++c) flush(c);
    }
};

// Blocks may be freed by destructors of other thread-local objects after this one is gone: `ended` sends them to the
// shared list. It is constant-initialised and trivial, so it can be read until the thread's very end.
thread_local bool ended = false;

struct ThreadCache : ThreadLists {
    ThreadCache() { static_cast<void>(shared()); }
    ~ThreadCache()
    {
        flushAll();
        ended = true;
    }
    ThreadCache(const ThreadCache&) = delete;
    ThreadCache& operator=(const ThreadCache&) = delete;
};

ThreadCache* threadCache() noexcept
{
    if (ended) return nullptr;
    thread_local ThreadCache cache;
    return &cache;
}

} // namespace

std::size_t BlockCache::classBytes(std::uint32_t sizeClass) noexcept
{
    const std::size_t base = std::size_t{1} << (kFirstShift + static_cast<int>(sizeClass / kStepsPerDoubling));
    return base + base / kStepsPerDoubling * (sizeClass % kStepsPerDoubling);
}

std::uint32_t BlockCache::classOf(std::size_t bytes) noexcept
{
    if (bytes <= (std::size_t{1} << kFirstShift)) return 0;
    const int shift = static_cast<int>(std::bit_width(bytes - 1)) - 1; // 2^shift < bytes <= 2^(shift+1)
    const std::size_t step = (std::size_t{1} << shift) / kStepsPerDoubling;
    const std::size_t over = (bytes - (std::size_t{1} << shift) + step - 1) / step;
    return static_cast<std::uint32_t>(shift - kFirstShift) * kStepsPerDoubling + static_cast<std::uint32_t>(over);
}

Block BlockCache::take(std::size_t bytes)
{
    if (bytes >= std::size_t{1} << 47) return {}; // above every class, and above what an address can reach
    const std::uint32_t sizeClass = classOf(bytes);
    const std::size_t size = classBytes(sizeClass);
    if (size <= kThreadBlockLimit) {
        if (ThreadCache* cache = threadCache()) {
            if (FreeBlock* block = cache->lists[sizeClass]) {
                cache->lists[sizeClass] = block->next;
                cache->kept -= size;
                return {asUsed(block, size), sizeClass};
            }
        }
    }
    void* memory = shared().take(sizeClass);
    if (memory == nullptr) memory = fromKernel(size);
    if (memory == nullptr) { // what is kept in other sizes may be what is missing
        trim();
        memory = fromKernel(size);
    }
    return {memory, sizeClass};
}

void BlockCache::give(Block block) noexcept
{
    const std::size_t size = classBytes(block.sizeClass);
    FreeBlock* free = asFree(block.memory, size);
    ThreadCache* cache = size <= kThreadBlockLimit ? threadCache() : nullptr;
    if (cache == nullptr) {
        shared().give(free, block.sizeClass);
        return;
    }
    free->next = cache->lists[block.sizeClass];
    cache->lists[block.sizeClass] = free;
    cache->kept += size;
    // A consumer frees what its producer allocates. What piles up here must soon find its way back, or the producer meets
    // fresh pages again and again.
    if (cache->kept > kThreadLimit) cache->flush(block.sizeClass);
}

void BlockCache::trim() noexcept
{
    if (ThreadCache* cache = threadCache()) cache->flushAll();
    shared().trim();
}

void BlockCache::setLimit(std::size_t bytes) noexcept { shared().setLimit(bytes); }
std::size_t BlockCache::keptBytes() noexcept { return shared().kept(); }

} // namespace stagecraft::runtime
