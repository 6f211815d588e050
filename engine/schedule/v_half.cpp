// SPDX-License-Identifier: Apache-2.0
//
// V-Half (arXiv 2405.15362; the order is that of sail-sg's zbv_greedy.py), p = 2, m = 4; stage 0, 3 on rank 0 and stage 1, 2 on
// rank 1; "3F0" is stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0I0 3I1 3W1 3F2 0W0 0F3 0I1 3I2 3W2 3F3 3I3 0I2 3W3 0I3 0W1 0W2 0W3
//   rank 1 |     1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 1F2 2F2 2I1 1I1 2W1 1F3 1W1 2F3 2I2 1I2 2I3 1I3 2W2 2W3 1W2 1W3
//
// The building block: forwards go down two slots a rank and come back one slot a rank, backwards the same, so that on every rank
// the two chunks together are held for about half the time that 1F1B's first rank holds its own. Slots of rank r (d = 3 where p
// is even, else 0, which keeps a rank's four slots apart modulo six):
//   F0  2r      F1  3p-2-r      I1  3p-1+d+2r      I0  6p-2+d-r
// Squeezed as building_block.h says. Peak floor((p+2)/2) micro-batches, bubble about half of 1F1B's. Any p up to 512, any m.
#include "engine/schedule/building_block.h"
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule vHalfSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int d = p % 2 == 0 ? 3 : 0;
    std::vector<BlockSlots> block;
    for (int r = 0; r < p; ++r) block.push_back({2 * r, 3 * p - 2 - r, 3 * p - 1 + d + 2 * r, 6 * p - 2 + d - r});
    return splitBackwardSchedule(request, block);
}

} // namespace

Generator vHalf()
{
    return {{"v-half", "V-Half",
             "ZB-V with half of its memory, flat over the ranks, and half of the bubble of 1F1B.",
             "two chunks per rank; up to 512 ranks, any number of micro-batches",
             "Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv 2405.15362", 2, 2,
             {{"paper", "V-Half"}, {"sail-sg", "zero-bubble schedule (zbv_greedy.py)"}}},
            &vHalfSchedule, &checkBlockRanks, &wavePlacement};
}

} // namespace stagecraft::engine
