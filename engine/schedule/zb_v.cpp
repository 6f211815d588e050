// SPDX-License-Identifier: Apache-2.0
//
// ZB-V by hand (arXiv 2401.10241 sec. 6; the order is that of PyTorch's ScheduleZBVZeroBubble), p = 2, m = 4; stage 0, 3 on
// rank 0 and stage 1, 2 on rank 1; "3F0" is stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3
//   rank 1 |     1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
//
// Chunk 0 is the rank's stage on the way down, chunk 1 that on the way back. Rank r, with F0 = a forward of chunk 0:
//   warm-up    2(p-r)-1 times F0; r times F1 F0; p-r times F1 I1 W1
//   steady     F0 (while there are any) I0 W0 F1 I1 W1, until all forwards are done
//   cool-down  r times I0 I1; p-r times I0 W0; then the weight gradients left of chunk 1, then those of chunk 0
// With TF = TI = TW no rank idles between its first and its last action. Each rank keeps at most p micro-batches, as the first
// rank of 1F1B does. Any p and m; the order is that of max(m, 2p-1) micro-batches, without those from m on.
#include "engine/schedule/families.h"
#include "engine/schedule/v_list.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

void fillRank(VList list, int p, int r, int m)
{
    const int n = std::max(m, 2 * p - 1);
    const auto wholeBackward = [&](int chunk) {
        list.inputGrad(chunk);
        list.weightGrad(chunk);
    };
    for (int i = 0; i < 2 * (p - r) - 1; ++i) list.forward(0);
    for (int i = 0; i < r; ++i) {
        list.forward(1);
        list.forward(0);
    }
    for (int i = 0; i < p - r; ++i) {
        list.forward(1);
        wholeBackward(1);
    }
    while (list.forwards(1) < n) {
        if (list.forwards(0) < n) list.forward(0);
        wholeBackward(0);
        list.forward(1);
        wholeBackward(1);
    }
    for (int i = 0; i < r; ++i) {
        list.inputGrad(0);
        list.inputGrad(1);
    }
    for (int i = 0; i < p - r; ++i) wholeBackward(0);
    for (const int chunk : {1, 0})
        while (list.pending(chunk)) list.weightGrad(chunk);
}

Schedule zbVSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, wavePlacement(p, 2), 6 * static_cast<std::size_t>(m));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        fillRank(VList(schedule, r), p, r, m);
    }
    return schedule;
}

} // namespace

Generator zbV()
{
    return {{"zb-v", "ZB-V",
             "Two chunks in a V and split backwards: no bubble within a rank where F, I and W take the same time, in the memory of 1F1B.",
             "two chunks per rank; any number of ranks and micro-batches, without bubble from m = 2p-1 on",
             "Qi et al. 2024, arXiv 2401.10241 sec. 6; PyTorch ScheduleZBVZeroBubble", 2, 2,
             {{"PyTorch", "ScheduleZBVZeroBubble"}, {"paper", "ZB-V"}}},
            &zbVSchedule, nullptr, &wavePlacement};
}

} // namespace stagecraft::engine
