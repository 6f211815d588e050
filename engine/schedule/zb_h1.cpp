// SPDX-License-Identifier: Apache-2.0
//
// ZB-H1 (Qi et al. 2023, arXiv 2401.10241 sec. 2.2), p = 3, m = 4; a backward is cut into the input gradient I, for which the
// rank before waits, and the weight gradient W, for which nobody does:
//
//   rank 0 | F0 F1 F2       I0 W0 F3 I1 W1    I2 W2    I3 W3        warm-up 2, lag 0
//   rank 1 |    F0 F1    I0 F2 I1 W0 F3 I2 W1 I3 W2 W3              warm-up 1, lag 1
//   rank 2 |       F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3              warm-up 0, lag 2
//
// 1F1B's warm-up of w = min(p-1-r, m) forwards; rank r puts W off by r input gradients, so that every rank keeps min(p, m)
// micro-batches. Makespan m(TF+TI+TW) + (p-1)(TF+TI-TW) with equal stages and TW not above TF and TI: a third of 1F1B's bubble
// where the three are equal. Any p and m.
#include "engine/schedule/families.h"
#include "engine/schedule/weight_lag.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule zbH1Schedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 3 * static_cast<std::size_t>(m));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        appendWithWeightLag(schedule.order[static_cast<std::size_t>(r)],
                            {.rank = r, .ranks = p, .microbatches = m, .group = m, .warmup = std::min(p - 1 - r, m), .lag = r});
    }
    return schedule;
}

} // namespace

Generator zbH1()
{
    return {{"zb-h1", "ZB-H1",
             "The weight gradient waits until a rank would idle: a third of 1F1B's bubble for the same memory.",
             "any number of ranks and micro-batches; one chunk per rank",
             "Zero Bubble Pipeline Parallelism, Qi et al. 2023, arXiv 2401.10241 section 2.2", 1, 1,
             {{"PyTorch", "ScheduleInterleavedZeroBubble with one stage per rank"}, {"paper", "ZB-H1"}}},
            &zbH1Schedule};
}

} // namespace stagecraft::engine
