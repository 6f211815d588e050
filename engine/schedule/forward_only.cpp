// SPDX-License-Identifier: Apache-2.0
//
// Forward only: inference, p = 3, m = 4:
//
//   rank 0 | F0 F1 F2 F3
//   rank 1 |    F0 F1 F2 F3
//   rank 2 |       F0 F1 F2 F3
//
// Makespan (m+p-1)TF, bubble (p-1)/(m+p-1): rank r waits r forwards at first and p-1-r at the end. Nothing is kept for a
// backward. Any p and m. It cannot train, so the live engine does not take it.
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule forwardOnlySchedule(const ScheduleRequest& request)
{
    Schedule schedule = emptySchedule(request, static_cast<std::size_t>(request.microbatches));
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        for (int i = 0; i < request.microbatches; ++i) list.push_back(traces::forward(Stage{r}, MicroBatch{i}));
    }
    return schedule;
}

} // namespace

Generator forwardOnly()
{
    Generator made{{"forward-only", "Forward only", "Inference: micro-batches go through the stages one way, and nothing comes back.",
                    "any number of ranks and micro-batches; one chunk per rank",
                    "DeepSpeed InferenceSchedule; PyTorch forward-only schedule", 1, 1,
                    {{"PyTorch", "_ScheduleForwardOnly"}, {"DeepSpeed", "InferenceSchedule"}}},
                   &forwardOnlySchedule};
    made.family.takesOffload = false;
    return made;
}

} // namespace stagecraft::engine
