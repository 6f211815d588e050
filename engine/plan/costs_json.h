// SPDX-License-Identifier: Apache-2.0
//
// Stage costs as JSON, for plans and for the messages of a session. Private to the engine's .cpp files.
#pragma once

#include "engine/plan/json_object.h"
#include "engine/simulate/cost_table.h"

namespace stagecraft::engine {

Json stageCostsJson(const StageCosts& costs);
traces::Expected<void> readStageCosts(const Json& json, const std::string& path, StageCosts& out);

} // namespace stagecraft::engine
