// SPDX-License-Identifier: Apache-2.0
//
// The part of validate() about OPTIMIZER actions. Synchronous: at most one of a stage, after its last B or W; the stages without one
// are updated when their rank is done. Asynchronous: one of each stage behind every group's gradients and before the next group's,
// the last group being what is left; with double-buffered weights a group's forwards come after the update whose weights they take.
// Precondition: the other rules hold.
#pragma once

#include "engine/schedule/schedule.h"

#include <functional>

namespace stagecraft::engine {

// A fault at a position of a rank's order (-1: something is missing there), with the action and what is wrong with it.
using ReportFault = std::function<void(Rank rank, int position, const std::string& action, const std::string& what)>;

void checkUpdates(const Schedule& schedule, const ReportFault& fault);

} // namespace stagecraft::engine
