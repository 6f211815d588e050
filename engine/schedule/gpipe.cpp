// SPDX-License-Identifier: Apache-2.0
//
// GPipe (Huang et al. 2018, arXiv 1811.06965), p = 3, m = 3, backwards in the order of the forwards as in PyTorch's
// ScheduleGPipe:
//
//   rank 0 | F0 F1 F2             B0 B1 B2
//   rank 1 |    F0 F1 F2       B0 B1 B2
//   rank 2 |       F0 F1 F2 B0 B1 B2
//
// Makespan (m+p-1)(TF+TB), bubble (p-1)/(m+p-1); every rank keeps the activations of all m micro-batches. Any p and m.
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule gpipeSchedule(const ScheduleRequest& request)
{
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(request.microbatches));
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        for (int i = 0; i < request.microbatches; ++i) list.push_back(traces::forward(Stage{r}, MicroBatch{i}));
        for (int i = 0; i < request.microbatches; ++i) list.push_back(traces::backward(Stage{r}, MicroBatch{i}));
    }
    return schedule;
}

} // namespace

Generator gpipe()
{
    return {{"gpipe", "GPipe", "All forwards, then all backwards: every rank keeps the activations of all micro-batches.",
             "any number of ranks and micro-batches; one chunk per rank",
             "Huang et al. 2018, arXiv 1811.06965; PyTorch ScheduleGPipe", 1, 1,
             {{"PyTorch", "ScheduleGPipe"}, {"PaddlePaddle", "FThenB"}}},
            &gpipeSchedule};
}

} // namespace stagecraft::engine
