// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory that are kept for the next use instead of being given back to the kernel: a training step asks for the
// same sizes again and again, and fresh pages cost a fault each (5 to 7 % of a step of gpt-small, more where weights are
// large and micro-batches small).
//
// Sizes are rounded up to classes, eight per doubling. Small blocks go through a list of the calling thread without a
// lock, large ones and what a thread has too much of through one shared list. Both are bounded; beyond the bound blocks
// go back to the kernel at once, and trim() gives back all that the shared list and the calling thread hold.
//
// All calls from any thread; take() of one thread and give() of another are fine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stagecraft::runtime {

struct Block {
    void* memory = nullptr; // aligned to 64 bytes; null when there is none to be had
    std::uint32_t sizeClass = 0;
};

class BlockCache {
public:
    static Block take(std::size_t bytes);
    static void give(Block block) noexcept;

    static void trim() noexcept;
    static void setLimit(std::size_t bytes) noexcept; // of the shared list; default: a quarter of the memory, at most 2 GiB
    static std::size_t keptBytes() noexcept;          // in the shared list

    static std::size_t classBytes(std::uint32_t sizeClass) noexcept;
    static std::uint32_t classOf(std::size_t bytes) noexcept;
};

} // namespace stagecraft::runtime
