// SPDX-License-Identifier: Apache-2.0
//
// Naive (sequential) model parallelism, p = 3, m = 2:
//
//   rank 0 | F0             B0 F1             B1
//   rank 1 |    F0       B0       F1       B1
//   rank 2 |       F0 B0             F1 B1
//
// A micro-batch is finished before the next one starts, so one rank works at a time: makespan m*p*(TF+TB), bubble (p-1)/p.
// At most one micro-batch is in flight. Any p and m.
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule naiveSchedule(const ScheduleRequest& request)
{
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(request.microbatches));
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        for (int i = 0; i < request.microbatches; ++i) {
            list.push_back(traces::forward(Stage{r}, MicroBatch{i}));
            list.push_back(traces::backward(Stage{r}, MicroBatch{i}));
        }
    }
    return schedule;
}

} // namespace

Generator naive()
{
    return {{"naive", "Naive", "One micro-batch at a time goes through all stages and back; one rank works, the others wait.",
             "any number of ranks and micro-batches; one chunk per rank", "sequential model parallelism", 1, 1, {}},
            &naiveSchedule};
}

} // namespace stagecraft::engine
