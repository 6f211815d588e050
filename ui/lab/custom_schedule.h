// SPDX-License-Identifier: GPL-3.0-or-later
//
// A plan whose schedule is written out: the text gives the order, and with it ranks, chunks and micro-batches.
//
//   Expected<Plan> plan = withCustomSchedule(document.plan(), "0F0, 0B0\n1F0, 1B0\n");
#pragma once

#include "engine/plan/plan.h"

#include <string>

namespace stagecraft::ui {

// An error names line and cell of what cannot be read, or what the schedule breaks.
engine::Expected<engine::Plan> withCustomSchedule(engine::Plan plan, std::string text);

} // namespace stagecraft::ui
