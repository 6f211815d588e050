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

// Do the plan or its schedule's file come through a pipe, as /dev/stdin may? Whoever opens it a second time finds nothing there.
bool comesOnce(const std::string& nameOrFile, const Overrides& overrides);

// An order of the user's own that cannot come to its end is an error with the whole circle, which names the file that holds it.
Expected<void> checkOrder(const engine::Plan& plan, const std::string& nameOrFile, const Overrides& overrides);

// Ends a verb whose plan is refused: wrong use where the plan that was opened is sound and the options made it one that no plan
// may be; a failure where the file itself holds such a plan.
int refused(const engine::Plan& opened, const engine::Plan& asked, const Error& reason);

// The plan with the order in the file that --schedule names; the plan itself where it names none.
Expected<engine::Plan> withScheduleFile(engine::Plan plan, const Overrides& overrides);

} // namespace stagecraft::cli
