// SPDX-License-Identifier: Apache-2.0
//
// A plan from JSON that was parsed already, for messages that carry one. Private to the engine's .cpp files.
#pragma once

#include "engine/plan/json_object.h"
#include "engine/plan/plan.h"

namespace stagecraft::engine {

Expected<Plan> readPlanObject(const Json& json); // as readPlan() (engine/plan/plan_json.h)

} // namespace stagecraft::engine
