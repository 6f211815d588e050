// SPDX-License-Identifier: Apache-2.0
//
// The generators behind generate(): one file per family, a pure function of a request that generate() has checked for
// ranges and chunk counts. What else a family needs it checks itself.
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

Expected<Schedule> naiveSchedule(const ScheduleRequest& request);
Expected<Schedule> gpipeSchedule(const ScheduleRequest& request);
Expected<Schedule> oneFOneBSchedule(const ScheduleRequest& request);
Expected<Schedule> interleavedSchedule(const ScheduleRequest& request);

// A schedule without actions: name, sizes and loop placement are set, each rank's list has room for `perRank` actions.
Schedule emptySchedule(const ScheduleRequest& request, std::size_t perRank);

} // namespace stagecraft::engine
