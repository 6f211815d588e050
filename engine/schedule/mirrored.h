// SPDX-License-Identifier: Apache-2.0
//
// What schedules of two directions share (DualPipe, Chimera): direction d has stage s on rank s, direction u on rank p-1-s, and
// each takes half of the micro-batches, which it numbers from 0.
//
//   Schedule schedule = mirroredSchedule(request, 2 * m);
#pragma once

#include "engine/schedule/families.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {

// Both numbers are even: half of the micro-batches go each way, and the middle of the pipeline lies between two ranks.
inline Expected<void> checkMirrored(const ScheduleRequest& request)
{
    const auto odd = [&](std::string_view thing, int ScheduleRequest::*number, const char* why) {
        const int given = request.*number;
        return Error{fmt::format("schedule {}: {} {} not allowed, {}{}", request.name, traces::counted(given, thing), given == 1 ? "is" : "are",
                                 why, offer(request, number, {given - 1, given + 1}, "; use an even number"))};
    };
    if (request.ranks % 2 != 0) return odd("rank", &ScheduleRequest::ranks, "the two directions meet between two ranks");
    if (request.microbatches % 2 != 0) return odd("micro-batch", &ScheduleRequest::microbatches, "half of them go each way");
    return {};
}

inline Schedule mirroredSchedule(const ScheduleRequest& request, std::size_t perRank)
{
    Schedule schedule = emptySchedule(request, perRank);
    schedule.upStageToRank.assign(schedule.stageToRank.rbegin(), schedule.stageToRank.rend());
    schedule.upMicrobatches = request.microbatches / 2;
    return schedule;
}

} // namespace stagecraft::engine
