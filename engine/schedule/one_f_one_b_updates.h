// SPDX-License-Identifier: Apache-2.0
//
// 1F1B without a flush, which the asynchronous schedules share: rank r takes min(p-1-r, m) forwards, then one forward, one backward
// over all micro-batches, and updates its stage after each group of `group` backwards, and after the last. The number of an
// OPTIMIZER is that of the last micro-batch whose gradient is in it:
//
//   F0 F1 | F2 B0 F3 B1 OPTIMIZER1 | B2 B3 OPTIMIZER3      p = 3, rank 0, m = 4, group 2
//
//   Schedule schedule = oneFOneBWithUpdates(request, UpdateRule::Stashed, 1);
#pragma once

#include "engine/schedule/alternate.h"
#include "engine/schedule/families.h"

#include <algorithm>

namespace stagecraft::engine {

inline Schedule oneFOneBWithUpdates(const ScheduleRequest& request, UpdateRule rule, int group)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(m) + static_cast<std::size_t>((m - 1) / group + 1));
    schedule.updates = rule;
    schedule.microbatchesPerUpdate = group;
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        alternateAfterWarmup(
            std::min(p - 1 - r, m), m, [&](int i) { list.push_back(traces::forward(Stage{r}, MicroBatch{i})); },
            [&](int i) {
                list.push_back(traces::backward(Stage{r}, MicroBatch{i}));
                if ((i + 1) % group == 0 || i + 1 == m) list.push_back(traces::makeAction(ActionKind::Optimizer, Stage{r}, MicroBatch{i}));
            });
    }
    return schedule;
}

} // namespace stagecraft::engine
