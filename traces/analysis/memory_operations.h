// SPDX-License-Identifier: Apache-2.0
//
// Calls that took memory from a GPU's driver or gave it back, as CUPTI records them: cudaMalloc and its like, by LibTorch's allocator for
// a reserve of its own, and by libraries. They lie on lanes of their own, a slice for each call, named by what it did:
//
//   GPU 0 memory operations      allocate 20 MiB for 0F3     the thread that called had set the mark of that action
//                                release 2 MiB of pinned memory of the host asynchronously
//
//   if (holdsMemoryOperations(lane.info())) use(memoryOperationOf(trace.text(lane.text(i)))->bytes);
//   show(memoryOperationsOf(trace, block).allocated);
#pragma once

#include "traces/base/action.h"
#include "traces/store/trace.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

enum class MemoryPlace : std::uint8_t { Device, Pinned, Pageable, Managed, Array };

struct MemoryOperation {
    bool allocates = true; // else it gives back
    Bytes bytes = 0;
    MemoryPlace place = MemoryPlace::Device;
    bool async = false; // in the order of a stream, from a pool
    std::optional<Action> action = {};

    bool operator==(const MemoryOperation&) const = default;
};

[[nodiscard]] std::string memoryOperationText(const MemoryOperation& operation);
[[nodiscard]] std::optional<MemoryOperation> memoryOperationOf(std::string_view text);

[[nodiscard]] std::string memoryOperationsLaneName(std::uint32_t gpu);
[[nodiscard]] bool holdsMemoryOperations(const LaneInfo& lane);

struct MemoryOperations {
    std::int64_t allocations = 0;
    std::int64_t releases = 0;
    Bytes allocated = 0; // on the device; the host's memory is counted, but is none of the GPU's
    Bytes released = 0;
    TimeNs inCalls = 0; // that the host took for them

    void add(const MemoryOperation& operation, TimeNs took);
    bool operator==(const MemoryOperations&) const = default;
};

// Of one block of a rank: those that carry its mark. A run ahead of its GPU calls before the block begins.
[[nodiscard]] MemoryOperations memoryOperationsOf(const Trace& trace, SliceRef block);

// Of each rank that has some: by the kind of action that they were for; None: of no action.
struct RankMemoryOperations {
    Rank rank{};
    MemoryOperations all;
    std::map<ActionKind, MemoryOperations> byKind;

    bool operator==(const RankMemoryOperations&) const = default;
};
[[nodiscard]] std::vector<RankMemoryOperations> memoryOperations(const Trace& trace);

} // namespace stagecraft::traces
