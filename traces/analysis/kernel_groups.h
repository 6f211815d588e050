// SPDX-License-Identifier: Apache-2.0
//
// What a device did for one block of a rank: its kernels and copies, grouped by name; on the CPU the operators that were called.
//
// They are those on the rank's lanes of streams, or of operators, that begin while the block lasts. A run on GPUs has the times of its blocks from the
// device, and blocks of a lane do not overlap, nor do the kernels of one lane of blocks lie on the streams' lanes of another, so a kernel is
// in the block that launched it, and in no other. A trace holds no number by
// which a kernel and its launch belong together: where the blocks have the host's times, a kernel counts to the block that was under
// way when it began. What the engine could tell to be of no action is left out, and so are NCCL's kernels, which run beside the blocks,
// and lanes of the host (its waits, its calls).
//
//   const std::optional<SliceRef> block = blockOf(trace, selected);
//   for (const KernelGroup& group : kernelsOf(trace, *block)) show(trace.text(group.name), group.count, group.total);
#pragma once

#include "traces/analysis/stream_lanes.h"
#include "traces/store/trace.h"

#include <optional>
#include <vector>

namespace stagecraft::traces {

// The block that a slice is, or in which it began where it is a kernel, a gap between two, or an operator; nothing for anything else.
[[nodiscard]] std::optional<SliceRef> blockOf(const Trace& trace, SliceRef slice);

struct KernelGroup {
    TextId name{};        // a text may have several ids; this is one of them
    std::size_t count = 0;
    TimeNs total = 0;     // of all of them
    double share = 0;     // of the time of all kernels of the block together, 0 to 1; streams that overlap count each
    SliceRef longest{};   // the first of those
};
// The most time first, and by name where it is the same.
[[nodiscard]] std::vector<KernelGroup> kernelsOf(const Trace& trace, SliceRef block);

} // namespace stagecraft::traces
