// SPDX-License-Identifier: Apache-2.0
//
// The generators behind generate(): one file per family, a pure function of a request that checkRequest() has passed. What a
// family needs beyond the ranges and its chunk counts it says in a check of its own. Each looks at the request's stop before
// it fills the list of a rank, and leaves the rest where it is asked for: generate() then gives no schedule at all.
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

Schedule naiveSchedule(const ScheduleRequest& request);
Schedule gpipeSchedule(const ScheduleRequest& request);
Schedule oneFOneBSchedule(const ScheduleRequest& request);
Schedule interleavedSchedule(const ScheduleRequest& request);
Expected<void> checkInterleaved(const ScheduleRequest& request);

// A schedule without actions: name, sizes and loop placement are set, each rank's list has room for `perRank` actions.
Schedule emptySchedule(const ScheduleRequest& request, std::size_t perRank);

} // namespace stagecraft::engine
