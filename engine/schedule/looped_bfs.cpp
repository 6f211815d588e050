// SPDX-License-Identifier: Apache-2.0
//
// Looped breadth-first (Lamy-Poirier 2022, arXiv 2211.05953), p = 2, v = 2, m = 2; stage 0, 2 on rank 0 and stage 1, 3 on
// rank 1; "2F0" is stage 2, micro-batch 0:
//
//   rank 0 | 0F0 0F1 2F0 2F1         2B1     2B0 0B1     0B0
//   rank 1 |     1F0 1F1 3F0 3F1 3B1     3B0     1B1     1B0
//
// Chunk by chunk, all micro-batches through each before the next: forwards in the order of the chunks, then backwards in the
// reverse order of chunks and of micro-batches (PyTorch's ScheduleLoopedBFS). A stage's weights are needed in one piece per
// pass, which suits sharded weights. Makespan m(TF+TB) + (p-1)(TF+TB)/v with m >= p; every rank keeps all m micro-batches.
// Any p, v and m; with one chunk it is gpipe-lifo. Its depth-first counterpart is interleaved.
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule loopedBfsSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int v = request.chunks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(m) * static_cast<std::size_t>(v));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        for (int chunk = 0; chunk < v; ++chunk)
            for (int i = 0; i < m; ++i) list.push_back(traces::forward(Stage{chunk * p + r}, MicroBatch{i}));
        for (int chunk = v - 1; chunk >= 0; --chunk)
            for (int i = m - 1; i >= 0; --i) list.push_back(traces::backward(Stage{chunk * p + r}, MicroBatch{i}));
    }
    return schedule;
}

} // namespace

Generator loopedBfs()
{
    return {{"looped-bfs", "Looped breadth-first",
             "Several chunks per rank, all micro-batches through one chunk before the next: weights are gathered once per pass.",
             "any number of ranks, chunks and micro-batches",
             "Lamy-Poirier 2022, arXiv 2211.05953; PyTorch ScheduleLoopedBFS", 1, kAnyChunks,
             {{"PyTorch", "ScheduleLoopedBFS"}, {"paper", "breadth-first pipeline parallelism"}}},
            &loopedBfsSchedule};
}

} // namespace stagecraft::engine
