// SPDX-License-Identifier: Apache-2.0
//
// A plan for another schedule: schedules take different numbers of chunks and slices, so that whoever sets them side by side, or
// chooses one of them, needs the nearest that each takes. Pure functions.
//
//   Plan plan = withSchedule(plan, "zb-v");   // two chunks per rank, whatever it had
#pragma once

#include "engine/plan/plan.h"
#include "engine/schedule/nearest_legal.h"

#include <string>

namespace stagecraft::engine {

// The number of chunks, or of slices, nearest to this one that the family takes.
int chunksFor(const std::string& schedule, int chunks);
int slicesFor(const std::string& schedule, int slices);

// The plan with another schedule, and with chunks and slices that the family takes; "custom" leaves it as it is.
Plan withSchedule(Plan plan, const std::string& schedule);

// The plan with the one number changed that keeps its schedule from being built.
Plan withChange(Plan plan, const LegalChange& change);

// "8 micro-batches", "2 chunks per rank"
std::string changeText(const LegalChange& change);

} // namespace stagecraft::engine
