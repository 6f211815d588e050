// SPDX-License-Identifier: Apache-2.0
//
// Where a schedule's stages lie, without making the schedule: for tables that say so.
//
//   placementOf("zb-v", 4, 2) == wavePlacement(4, 2)
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

// Rank of each stage; of two directions, of the one that runs down. A name that is no family's is laid in a loop.
std::vector<Rank> placementOf(std::string_view schedule, int ranks, int chunks);

} // namespace stagecraft::engine
