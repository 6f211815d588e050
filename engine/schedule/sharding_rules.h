// SPDX-License-Identifier: Apache-2.0
//
// The part of validate() that is about divided weights and gradients, in the order of each rank:
//   of a stage that is gathered at all, weights are used only between its UNSHARD and its RESHARD;
//   it is gathered when it is not, and given up when it is;
//   what was gathered before an update is not used behind it;
//   REDUCE_GRAD comes once, behind the last B or W of its stage and before its last OPTIMIZER, and for every stage or for none;
//   ALL_REDUCE likewise, for the stages that have copies elsewhere (tied weights), and not beside a REDUCE_GRAD.
//
//   checkSharding(schedule, [&](Rank rank, int position, const std::string& action, const std::string& what) { ... });
#pragma once

#include "engine/schedule/schedule.h"

#include <functional>
#include <string>

namespace stagecraft::engine {

// `what` goes on from the action's name; position -1 where the action is missing.
using ShardingFault = std::function<void(Rank rank, int position, const std::string& action, const std::string& what)>;

// Precondition: stages lie within the schedule's shape.
void checkSharding(const Schedule& schedule, const ShardingFault& fault);

} // namespace stagecraft::engine
