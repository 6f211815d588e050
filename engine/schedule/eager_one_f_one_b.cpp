// SPDX-License-Identifier: Apache-2.0
//
// Eager 1F1B (Zhuang et al. 2022, arXiv 2211.05322 sec. 4), p = 3, m = 5:
//
//   rank 0 | F0 F1 F2 F3 F4    B0          B1    B2    B3    B4      warm-up 4
//   rank 1 |    F0 F1 F2    B0 F3       B1 F4 B2    B3    B4         warm-up 2
//   rank 2 |       F0    B0 F1    B1 F2 B2 F3 B3 F4 B4               warm-up 0
//
// 1F1B with w = min(2(p-1-r), m) forwards to warm up, twice as many: one more micro-batch lies between neighbours, and a transfer
// there and back together have the time of a forward and a backward. With free transfers the makespan is that of 1F1B; a latency c of
// at most (F+B)/2 costs 2(p-1)c in all, where 1F1B pays in its steady state; a longer one is waited for there as well. Rank r keeps
// min(2(p-1-r)+1, m) micro-batches. Any p and m.
#include "engine/schedule/alternate.h"
#include "engine/schedule/families.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule eagerOneFOneBSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(m));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        alternateAfterWarmup(
            std::min(2 * (p - 1 - r), m), m, [&](int i) { list.push_back(traces::forward(Stage{r}, MicroBatch{i})); },
            [&](int i) { list.push_back(traces::backward(Stage{r}, MicroBatch{i})); });
    }
    return schedule;
}

} // namespace

Generator eagerOneFOneB()
{
    return {{"eager-1f1b", "Eager 1F1B",
             "1F1B with twice the warm-up: transfers hide behind the work, for nearly twice the micro-batches in flight.",
             "any number of ranks and micro-batches; one chunk per rank",
             "Zhuang et al. 2022, arXiv 2211.05322 (Alpa)", 1, 1,
             {{"Alpa", "1f1b_overlap_friendly"}, {"JaxPP", "Eager1F1B"}, {"PaddlePaddle", "Eager1F1B"}}},
            &eagerOneFOneBSchedule};
}

} // namespace stagecraft::engine
