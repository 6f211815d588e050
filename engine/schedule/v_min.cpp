// SPDX-License-Identifier: Apache-2.0
//
// V-Min (arXiv 2405.15362; the order is that of sail-sg's zbv_greedy.py), p = 2, m = 4; stage 0, 3 on rank 0 and stage 1, 2 on
// rank 1; "3F0" is stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1 3F0 3I0 3W0 0I0 0W0 3F1 3I1 3W1 0F2 0I1 0W1 3F2 3I2 3W2 0F3 0I2 0W2 3F3 3I3 3W3 0I3 0W3
//   rank 1 |     1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 1F2 2F2 2W1 1W1 2I2 1I2 1F3 2F3 2W2 1W2 2I3 1I3 2W3 1W3
//
// The building block: every pass goes down or back one slot a rank, the shortest that a micro-batch can take, so that it is held
// for no longer than it must. Slots of rank r (d = 2 where p is a multiple of three, else 0, which keeps a rank's four slots
// apart modulo six):
//   F0  r      F1  2p-1-r      I1  2p+d+r      I0  4p-1+d-r
// Squeezed as building_block.h says. Peak floor((p+4)/3) micro-batches, bubble about two thirds of 1F1B's; where F, I and W do
// not take the same time, it has more. Any p up to 512, any m.
#include "engine/schedule/building_block.h"
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule vMinSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int d = p % 3 == 0 ? 2 : 0;
    std::vector<BlockSlots> block;
    for (int r = 0; r < p; ++r) block.push_back({r, 2 * p - 1 - r, 2 * p + d + r, 4 * p - 1 + d - r});
    return splitBackwardSchedule(request, block);
}

} // namespace

Generator vMin()
{
    return {{"v-min", "V-Min",
             "ZB-V with a third of its memory, flat over the ranks, and two thirds of the bubble of 1F1B.",
             "two chunks per rank; up to 512 ranks, any number of micro-batches",
             "Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv 2405.15362", 2, 2,
             {{"paper", "V-Min"}, {"sail-sg", "zero-bubble schedule (zbv_greedy.py)"}}},
            &vMinSchedule, &checkBlockRanks, &wavePlacement};
}

} // namespace stagecraft::engine
