// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473 sec. 2.2), p = 2, v = 2, m = 2; stage 0, 2 on rank 0 and
// stage 1, 3 on rank 1; "2F0" is stage 2, micro-batch 0:
//
//   rank 0 | 0F0 0F1 2F0 2F1     2B0     2B1 0B0     0B1
//   rank 1 |     1F0 1F1 3F0 3B0 3F1 3B1     1B0 1B1
//
// Forwards and backwards go through the rank's chunks in groups of g micro-batches: the k-th forward uses chunk
// (k div g) mod v, the k-th backward chunk v-1-((k div g) mod v). Warm-up w = min((v-1)g + 2(p-1-r), mv), then one forward,
// one backward, then the rest. Bubble time (p-1)(TF+TB)/v.
// g by PyTorch's rule (ScheduleInterleaved1F1B): rounds = max(1, m div p), g = m / rounds, which must be whole.
#include "engine/schedule/chunk_walk.h"
#include "engine/schedule/families.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule interleavedSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int v = request.chunks;
    const int m = request.microbatches;
    const int group = roundSize(request);
    const int total = m * v;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(total));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        ChunkWalk forwards(v, m, group, ChunkWalk::Way::Ahead);
        ChunkWalk backwards(v, m, group, ChunkWalk::Way::Back);
        const auto append = [&](ActionKind kind, ChunkWalk& walk) {
            const auto [chunk, microbatch] = walk.next();
            list.push_back(traces::makeAction(kind, Stage{chunk * p + r}, microbatch));
        };
        const int warmup = static_cast<int>(
            std::min<long long>(static_cast<long long>(v - 1) * group + 2LL * (p - 1 - r), total));
        for (int k = 0; k < warmup; ++k) append(ActionKind::Forward, forwards);
        for (int k = warmup; k < total; ++k) {
            append(ActionKind::Forward, forwards);
            append(ActionKind::Backward, backwards);
        }
        for (int k = 0; k < warmup; ++k) append(ActionKind::Backward, backwards);
    }
    return schedule;
}

} // namespace

Generator interleaved()
{
    return {{"interleaved", "Interleaved 1F1B",
             "Each rank holds several chunks of the model: the bubble shrinks by their number, transfers grow by it.",
             "two chunks per rank or more; m a multiple of max(1, m div p)",
             "Narayanan et al. 2021, arXiv 2104.04473; PyTorch ScheduleInterleaved1F1B", 2, kAnyChunks,
             {{"PyTorch", "ScheduleInterleaved1F1B"}, {"Megatron-LM", "forward_backward_pipelining_with_interleaving"},
              {"paper", "virtual pipeline (VPP)"}}},
            &interleavedSchedule, &roundsFit};
}

} // namespace stagecraft::engine
