// SPDX-License-Identifier: Apache-2.0
//
// The machine of a plan as JSON, and what is sound. Private to the engine's .cpp files.
#pragma once

#include "engine/plan/json_object.h"
#include "engine/simulate/machine_model.h"

namespace stagecraft::engine {

traces::Expected<void> readMachine(const Json& json, MachineModel& machine);
// What differs from the default, in the order in which a person wants to read it.
nlohmann::ordered_json machineJson(const MachineModel& machine);

// Ranges, and lists that have an entry per rank. Errors name the key.
traces::Expected<void> checkMachine(const MachineModel& machine, int ranks);

} // namespace stagecraft::engine
