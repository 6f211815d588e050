// SPDX-License-Identifier: Apache-2.0
//
// 1F1B (PipeDream-Flush, arXiv 2006.09503; DAPPLE, arXiv 2007.01045), p = 3, m = 4:
//
//   rank 0 | F0 F1 F2          B0 F3    B1    B2    B3        warm-up 2
//   rank 1 |    F0 F1       B0 F2 B1 F3 B2    B3              warm-up 1
//   rank 2 |       F0    B0 F1 B1 F2 B2 F3 B3                 warm-up 0
//
// w = min(p-1-r, m) forwards to warm up, then one forward, one backward, then the w backwards that are left. Makespan and
// bubble of GPipe, but rank r keeps at most min(p-r, m) micro-batches. Any p and m; with m < p it fills no further.
#include "engine/schedule/alternate.h"
#include "engine/schedule/families.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule oneFOneBSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(m));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        alternateAfterWarmup(
            std::min(p - 1 - r, m), m, [&](int i) { list.push_back(traces::forward(Stage{r}, MicroBatch{i})); },
            [&](int i) { list.push_back(traces::backward(Stage{r}, MicroBatch{i})); });
    }
    return schedule;
}

} // namespace

Generator oneFOneB()
{
    return {{"1f1b", "1F1B",
             "After a short warm-up one forward, one backward: the bubble of GPipe, but at most p micro-batches in flight.",
             "any number of ranks and micro-batches; one chunk per rank",
             "PipeDream-Flush, Narayanan et al. 2020, arXiv 2006.09503; DAPPLE, arXiv 2007.01045", 1, 1,
             {{"PyTorch", "Schedule1F1B"}, {"Megatron-LM", "forward_backward_pipelining_without_interleaving"},
              {"DeepSpeed", "TrainSchedule"}, {"papers", "PipeDream-Flush, DAPPLE"}}},
            &oneFOneBSchedule};
}

} // namespace stagecraft::engine
