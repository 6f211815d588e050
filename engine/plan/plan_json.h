// SPDX-License-Identifier: Apache-2.0
//
// A plan as JSON (schema version 1). Unknown keys, wrong types and values out of range are errors that name the key's
// path, the value and what is allowed: "pipeline.ranks: -2 is not allowed; 1 to 1024". writePlan(readPlan(x)) is stable,
// readPlan(writePlan(plan)) == plan.
#pragma once

#include "engine/plan/plan.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

inline constexpr int kPlanSchemaVersion = 1;

Expected<Plan> readPlan(std::string_view json);
std::string writePlan(const Plan& plan); // pretty, two blanks, final newline

// Errors name the file. Files that the plan names are seen from its folder (plan_files.h).
Expected<Plan> loadPlan(const std::filesystem::path& file);
Expected<void> savePlan(const Plan& plan, const std::filesystem::path& file); // through a temporary file, then renamed

// The presets of resources/plans (compiled in), in the order in which they are offered.
struct PresetPlan {
    std::string name; // "hello"
    std::string json;
};
const std::vector<PresetPlan>& presetPlans();
Expected<Plan> presetPlan(std::string_view name);

// A plan as a command line names it: a file, or a preset where there is no such file. An error lists the presets.
Expected<Plan> planNamed(const std::string& nameOrFile);

} // namespace stagecraft::engine
