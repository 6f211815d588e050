// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's CPU allocator, replaced: every block knows which rank asked for it, in which class it counts, and how many
// bytes were asked for. What the calling thread allocates is booked where its innermost AllocationScope says; without one
// it is booked nowhere. The class of a live block can be changed once its role is known: what the backward allocated
// becomes a gradient when it is found in a parameter's .grad.
//
// Memory of devices keeps LibTorch's allocators; what they give is booked in the same way (device_blocks.h), and the calls below take
// its blocks as well.
//
// Blocks come from BlockCache. Scratch that MKL and oneDNN take for themselves does not pass here and is not counted.
//
//   installTaggingAllocator();                        // before the first tensor of the process
//   AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Weights});
#pragma once

#include "engine/probe/memory_ledger.h"

#include <optional>

namespace c10 {
class DataPtr;
}

namespace stagecraft::runtime {

// Does nothing from the second call on. Tensors made before stay with LibTorch's own allocator; they must not be reclassed.
void installTaggingAllocator();

struct AllocationTag {
    MemoryLedger* ledger = nullptr; // not owned; must live as long as the scope
    MemoryClass memory = MemoryClass::Other;
    int failIn = 0; // tests: the n-th allocation of the scope fails, as if memory had run out; 0: none does
};

class AllocationScope {
public:
    explicit AllocationScope(const AllocationTag& tag);
    ~AllocationScope();
    AllocationScope(const AllocationScope&) = delete;
    AllocationScope& operator=(const AllocationScope&) = delete;

private:
    AllocationTag outer_;
};

// What the calling thread allocates now is booked so.
const AllocationTag& currentAllocationTag() noexcept;

// Of a live block, of the CPU or a device: tensor.storage().data_ptr(). An empty one does nothing.
void reclass(const c10::DataPtr& block, MemoryClass memory);
// Takes it off its owner's ledger; it belongs to nobody from then on.
void disown(const c10::DataPtr& block);
// Books a live block elsewhere from now on: what one rank made has gone over to another. Throws what an allocation throws where that
// rank has no room for it.
void rebook(const c10::DataPtr& block, const AllocationTag& to);
// Of a block that came from here: where it is booked. Nothing of one from elsewhere.
std::optional<AllocationTag> tagOf(const c10::DataPtr& block);

} // namespace stagecraft::runtime
