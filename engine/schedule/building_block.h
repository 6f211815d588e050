// SPDX-License-Identifier: Apache-2.0
//
// Schedules in V placement that repeat a building block (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory",
// arXiv 2405.15362): time is cut into slots, and every micro-batch takes the same slots as the one before it, six slots
// later. How long the block keeps its two activations settles the memory of the whole. The repeated block has gaps where the
// pipeline fills and drains; what can go into them without raising the peak of memory is moved there ("squeezing").
//
//   Schedule s = splitBackwardSchedule(request, {{0, 1, 2, 3}});   // one rank: F0 F1 I1 I0, the weight gradients between
#pragma once

#include "engine/schedule/schedule.h"

#include <array>
#include <vector>

namespace stagecraft::engine {

// Slots of micro-batch 0 on one rank: forward of chunk 0, forward of chunk 1, backward of chunk 1, backward of chunk 0.
using BlockSlots = std::array<int, 4>;

// The grid of slots grows with the square of the ranks.
inline constexpr int kMostBlockRanks = 512;
Expected<void> checkBlockRanks(const ScheduleRequest& request);

// `block` has the slots of each rank. No two of a rank are the same modulo six.
// Input gradients take one slot, and weight gradients the slots that are left.
Schedule splitBackwardSchedule(const ScheduleRequest& request, const std::vector<BlockSlots>& block);
// Backwards take two slots, the one of `block` and the next.
Schedule fullBackwardSchedule(const ScheduleRequest& request, const std::vector<BlockSlots>& block);

} // namespace stagecraft::engine
