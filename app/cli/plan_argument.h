// SPDX-License-Identifier: Apache-2.0
//
// PLAN on the command line: a file, or the name of a preset.
#pragma once

#include "app/cli/command.h"
#include "app/cli/overrides.h"
#include "engine/plan/plan.h"

namespace stagecraft::cli {

// A file of that name wins over a preset. The empty text gives the default plan: forward 1 ms, backward 2 ms, no latency.
Expected<engine::Plan> openPlan(const std::string& nameOrFile, const Overrides& overrides);

// Ends a verb whose plan is refused: wrong use where the plan that was opened is sound and the options made it one that no plan
// may be; a failure where the file itself holds such a plan.
int refused(const engine::Plan& opened, const engine::Plan& asked, const Error& reason);

// The plan with the order in the file that --schedule names; the plan itself where it names none.
Expected<engine::Plan> withScheduleFile(engine::Plan plan, const Overrides& overrides);

} // namespace stagecraft::cli
