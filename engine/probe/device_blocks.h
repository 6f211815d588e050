// SPDX-License-Identifier: Apache-2.0
//
// Memory of devices on the ranks' ledgers. There the allocator is LibTorch's own, and tells what it gives and takes back; so the block's
// owner and class stand here, by address, instead of before the block. Booked where the calling thread's AllocationScope says
// (tagging_allocator.h).
//
// A device's allocator cannot be made to refuse: what is more than the rank may have is booked all the same, and the ledger says so
// (MemoryLedger::overdrawn), which the run looks for after each action.
//
//   deviceBlockTaken(address, bytes);   // from the allocator's own trace, under its locks: calls nothing of LibTorch
#pragma once

#include "engine/probe/memory_ledger.h"

namespace stagecraft::runtime {

struct AllocationTag;

// Any thread.
void deviceBlockTaken(const void* data, Bytes bytes) noexcept;
void deviceBlockGone(const void* data) noexcept;

// What tagging_allocator.h offers, for a block of a device. Nothing where the block is not known.
void reclassDeviceBlock(const void* data, MemoryClass memory) noexcept;
void rebookDeviceBlock(const void* data, const AllocationTag* to) noexcept; // none: it is nobody's
[[nodiscard]] AllocationTag tagOfDeviceBlock(const void* data) noexcept;

} // namespace stagecraft::runtime
