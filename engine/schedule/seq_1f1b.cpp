// SPDX-License-Identifier: Apache-2.0
//
// Seq1F1B (Sun et al. 2024, arXiv 2406.03488), p = 3, m = 2, k = 2 slices of each sequence; number i*k+j is slice j of micro-batch i:
//
//   rank 0 | F0 F1 F2          B1 F3 B0    B3    B2        warm-up 3
//   rank 1 |    F0 F1       B1 F2 B0 F3 B3    B2           warm-up 2
//   rank 2 |       F0 F1 B1 F2 B0 F3 B3 B2                 warm-up 1
//
// 1F1B over slices instead of micro-batches: the slices of a sequence go forward in order, for attention reads the keys and values
// of those before, and backward in the opposite order. Warm-up w = min(p-r-2+k, m k), then one forward, one backward.
// With equal slice times: bubble (p-1)/(m k + p-1), and rank r keeps at most p-1-r+k slices. With k = 1 it is 1F1B. Any p and m.
#include "engine/schedule/alternate.h"
#include "engine/schedule/families.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

Schedule seq1F1BSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int k = request.slices;
    const int units = request.microbatches * k;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(units));
    const auto backwardUnit = [&](int n) { return n / k * k + (k - 1 - n % k); }; // the n-th backward's
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        alternateAfterWarmup(
            std::min(p - r - 2 + k, units), units, [&](int n) { list.push_back(traces::forward(Stage{r}, MicroBatch{n})); },
            [&](int n) { list.push_back(traces::backward(Stage{r}, MicroBatch{backwardUnit(n)})); });
    }
    return schedule;
}

} // namespace

Generator seq1F1B()
{
    return {{"seq1f1b", "Seq1F1B", "1F1B over slices of the sequences: less of a bubble and less memory, for shorter pieces.",
             "any number of ranks, micro-batches and slices; one chunk per rank", "Sun et al. 2024, arXiv 2406.03488", 1, 1,
             {{"paper", "Seq1F1B"}}, false, true},
            &seq1F1BSchedule};
}

} // namespace stagecraft::engine
