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
// g by PyTorch's rule (ScheduleInterleaved1F1B): rounds = max(1, m div p), g = m / rounds, which must be whole. Or as asked for, by
// Megatron-LM's (microbatch_group_size_per_vp_stage): from p to m, and the last group takes the rest, which must be none or at
// least p. With fewer micro-batches than ranks in a group the ranks wait longer, and may wait for each other for ever.
#include "engine/schedule/alternate.h"
#include "engine/schedule/chunk_walk.h"
#include "engine/schedule/families.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

bool groupFits(int group, int m, int p)
{
    return group >= std::min(p, m) && group <= m && (m % group == 0 || m % group >= p);
}

int nearestGroup(int wanted, int m, int p)
{
    wanted = std::clamp(wanted, std::min(p, m), m);
    for (int distance = 0;; ++distance) { // all in one group fits always
        if (wanted - distance >= 1 && groupFits(wanted - distance, m, p)) return wanted - distance;
        if (wanted + distance <= m && groupFits(wanted + distance, m, p)) return wanted + distance;
    }
}

Expected<void> checkInterleaved(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    const int group = request.group;
    if (group == 0) return roundsFit(request);
    if (groupFits(group, m, p)) return {};
    const std::string why = group < std::min(p, m) || group > m
                                ? fmt::format("a group takes {} to {}", std::min(p, m), m)
                                : fmt::format("they leave {} for the last group, too few for {}", m % group, traces::counted(p, "rank"));
    return Error{fmt::format("schedule {}: groups of {} are not allowed, {}; the nearest size that fits is {}", request.name,
                             traces::counted(group, "micro-batch"), why, nearestGroup(group, m, p))};
}

Schedule interleavedSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int v = request.chunks;
    const int m = request.microbatches;
    const int group = request.group > 0 ? request.group : roundSize(request);
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
        alternateAfterWarmup(
            warmup, total, [&](int) { append(ActionKind::Forward, forwards); },
            [&](int) { append(ActionKind::Backward, backwards); });
    }
    return schedule;
}

} // namespace

Generator interleaved()
{
    Generator made{{"interleaved", "Interleaved 1F1B",
             "Each rank holds several chunks of the model: the bubble shrinks by their number, transfers grow by it.",
             "two chunks per rank or more; m a multiple of max(1, m div p), or groups of a size of your own",
             "Narayanan et al. 2021, arXiv 2104.04473; PyTorch ScheduleInterleaved1F1B", 2, kAnyChunks,
             {{"PyTorch", "ScheduleInterleaved1F1B"}, {"Megatron-LM", "forward_backward_pipelining_with_interleaving"},
              {"paper", "virtual pipeline (VPP)"}}},
            &interleavedSchedule, &checkInterleaved};
    made.family.goesInGroups = true;
    return made;
}

} // namespace stagecraft::engine
