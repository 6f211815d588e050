// SPDX-License-Identifier: Apache-2.0
//
// GPipe with the backwards in reverse order, as the figure of the paper draws it (Huang et al. 2018, arXiv 1811.06965 fig. 2)
// and as torchgpipe's autograd graph makes it happen, p = 3, m = 3:
//
//   rank 0 | F0 F1 F2             B2 B1 B0
//   rank 1 |    F0 F1 F2       B2 B1 B0
//   rank 2 |       F0 F1 F2 B2 B1 B0
//
// Makespan, bubble and peak of GPipe: only the order of the backwards differs, so the last micro-batch is held for the shortest
// time and the first for the longest. Any p and m.
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule gpipeLifoSchedule(const ScheduleRequest& request)
{
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(request.microbatches));
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        for (int i = 0; i < request.microbatches; ++i) list.push_back(traces::forward(Stage{r}, MicroBatch{i}));
        for (int i = request.microbatches - 1; i >= 0; --i) list.push_back(traces::backward(Stage{r}, MicroBatch{i}));
    }
    return schedule;
}

} // namespace

Generator gpipeLifo()
{
    return {{"gpipe-lifo", "GPipe, last in first out",
             "GPipe whose backwards run in reverse: what went forward last comes back first, as the paper draws it.",
             "any number of ranks and micro-batches; one chunk per rank",
             "Huang et al. 2018, arXiv 1811.06965 figure 2; torchgpipe", 1, 1,
             {{"torchgpipe", "GPipe"}, {"fairscale", "Pipe"}}},
            &gpipeLifoSchedule};
}

} // namespace stagecraft::engine
