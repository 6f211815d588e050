// SPDX-License-Identifier: Apache-2.0
//
// Ranks that wait for each other in a circle, in words for people.
//
//   const ValidationReport report = validate(schedule);
//   circleText(report.deadlock)     // "rank 0 at position 1 (0B0) waits for 1B0 on rank 1; rank 1 at position 0 (1F1) waits for 0F1 on rank 0"
//   if (!report.deadlock.empty()) return deadlockError(report.deadlock).in("my.schedule");
#pragma once

#include "engine/schedule/validate.h"

namespace stagecraft::engine {

std::string circleText(const std::vector<WaitingRank>& circle);

// That an order cannot come to its end: the whole circle, and what to do.
Error deadlockError(const std::vector<WaitingRank>& circle);

} // namespace stagecraft::engine
