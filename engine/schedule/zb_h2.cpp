// SPDX-License-Identifier: Apache-2.0
//
// ZB-H2 (Qi et al. 2023, arXiv 2401.10241 sec. 2.3), p = 3, m = 6:
//
//   rank 0 | F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5                warm-up 4, lag 0
//   rank 1 |    F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5             warm-up 2, lag 2
//   rank 2 |       F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5          warm-up 0, lag 4
//
// ZB-H1 with twice the warm-up, w = min(2(p-1-r), m), and twice the lag, 2r: the forwards reach until the first input gradient
// comes back, so that with TF = TI = TW no rank idles between its first and its last action. It is a parallelogram: the
// makespan has a bubble still, unless the optimizer steps without a barrier over the ranks. The span is then
// m(TF+TI+TW) + (p-1)(TF+TI-2TW). Every rank keeps min(2p-1, m) micro-batches. Made for m >= 2p-1; any p and m are legal.
#include "engine/schedule/families.h"
#include "engine/schedule/weight_lag.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule zbH2Schedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 3 * static_cast<std::size_t>(m));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        appendWithWeightLag(
            schedule.order[static_cast<std::size_t>(r)],
            {.rank = r, .ranks = p, .microbatches = m, .group = m, .warmup = std::min(2 * (p - 1 - r), m), .lag = 2 * r});
    }
    return schedule;
}

} // namespace

Generator zbH2()
{
    return {{"zb-h2", "ZB-H2",
             "ZB-H1 with twice the warm-up: no rank idles once it has begun, for nearly twice the memory.",
             "any number of ranks and micro-batches, at its best from 2p-1 on; one chunk per rank",
             "Zero Bubble Pipeline Parallelism, Qi et al. 2023, arXiv 2401.10241 section 2.3", 1, 1,
             {{"paper", "ZB-H2"}}},
            &zbH2Schedule};
}

} // namespace stagecraft::engine
