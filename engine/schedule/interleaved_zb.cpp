// SPDX-License-Identifier: Apache-2.0
//
// Interleaved zero bubble (PyTorch's ScheduleInterleavedZeroBubble), p = 2, v = 2, m = 2; stage 0, 2 on rank 0 and stage 1, 3
// on rank 1; "2F0" is stage 2, micro-batch 0:
//
//   rank 0 | 0F0 0F1 2F0 2F1         2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1          warm-up 3, lag 0
//   rank 1 |     1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1              warm-up 2, lag 1
//
// The walk of interleaved through groups of chunks with the rule of zb-h1: w = min((v-1)g + (p-1-r), mv) forwards to warm up,
// weight gradients put off by r input gradients. Where TF = TI = TW and m >= p it takes 3mv + p - 1 chunk slots: the bubble of
// ZB-H1 over v, with p micro-batches kept on every rank. g is PyTorch's: max(1, m div p) rounds of equal size. With one chunk
// per rank it is exactly zb-h1, which PyTorch allows.
#include "engine/schedule/chunk_walk.h"
#include "engine/schedule/families.h"
#include "engine/schedule/weight_lag.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule interleavedZbSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int v = request.chunks;
    const int m = request.microbatches;
    const int group = roundSize(request);
    Schedule schedule = emptySchedule(request, 3 * static_cast<std::size_t>(m) * static_cast<std::size_t>(v));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        const long long warmup = (v - 1LL) * group + (p - 1 - r);
        appendWithWeightLag(schedule.order[static_cast<std::size_t>(r)],
                            {.rank = r,
                             .ranks = p,
                             .chunks = v,
                             .microbatches = m,
                             .group = group,
                             .warmup = static_cast<int>(std::min<long long>(warmup, static_cast<long long>(m) * v)),
                             .lag = r});
    }
    return schedule;
}

} // namespace

Generator interleavedZb()
{
    return {{"interleaved-zb", "Interleaved zero bubble",
             "Interleaved 1F1B whose weight gradients fill the bubble: ZB-H1's, made smaller by the number of chunks.",
             "any number of chunks; m a multiple of max(1, m div p)",
             "PyTorch ScheduleInterleavedZeroBubble, after Qi et al. 2023, arXiv 2401.10241", 1, kAnyChunks,
             {{"PyTorch", "ScheduleInterleavedZeroBubble"}, {"torchtitan", "InterleavedZeroBubble"}}},
            &interleavedZbSchedule, &roundsFit};
}

} // namespace stagecraft::engine
