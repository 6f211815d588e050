// SPDX-License-Identifier: Apache-2.0
//
// 1F1B-V (sail-sg's v1f1b.py, after arXiv 2405.15362), p = 2, m = 4; stage 0, 3 on rank 0 and stage 1, 2 on rank 1; "3F0" is
// stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1 0F2 3F0 3B0     3F1 3B1     0F3 0B0     3F2 3B2     0B1     3F3 3B3     0B2     0B3
//   rank 1 |     1F0 2F0 1F1 2F1 2B0     1B0     1F2 2F2 2B1     1B1     1F3 2F3 2B2     1B2     2B3     1B3
//
// V-Min's thought with full backwards, which take two slots: forwards go down and back one slot a rank, backwards two, and three
// slots more after every third, where two full backwards of six slots would meet. Slots of rank r, with d = 3 where p is a
// multiple of three, else 0, and c = (1-p) mod 3:
//   F0  r      F1  2p-1-r      B1  2p+d+2r+3((c+r) div 3)      B0  2p+d+2n+3((c+n) div 3) with n = 2p-1-r
// Squeezed as building_block.h says. Peak ceil((2p+1)/3) micro-batches, bubble about four fifths of 1F1B's. Any p up to 512,
// any m.
#include "engine/schedule/building_block.h"
#include "engine/schedule/families.h"

namespace stagecraft::engine {
namespace {

Schedule oneFOneBVSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int first = 2 * p + (p % 3 == 0 ? 3 : 0);
    const int shift = (p + 2) % 3 == 0 ? 0 : 3 - (p + 2) % 3; // (1-p) mod 3
    const auto backward = [&](int n) { return first + 2 * n + 3 * ((shift + n) / 3); }; // the n-th of the way back
    std::vector<BlockSlots> block;
    for (int r = 0; r < p; ++r) block.push_back({r, 2 * p - 1 - r, backward(r), backward(2 * p - 1 - r)});
    return fullBackwardSchedule(request, block);
}

} // namespace

Generator oneFOneBV()
{
    return {{"1f1b-v", "1F1B-V",
             "Two chunks in a V with whole backwards: somewhat less bubble than 1F1B in two thirds of its memory, flat over the ranks.",
             "two chunks per rank; up to 512 ranks, any number of micro-batches",
             "Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv 2405.15362", 2, 2,
             {{"sail-sg", "zero-bubble schedule (v1f1b.py)"}}},
            &oneFOneBVSchedule, &checkBlockRanks, &wavePlacement};
}

} // namespace stagecraft::engine
