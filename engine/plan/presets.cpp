// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_json.h"

#include <fmt/format.h>

#include <filesystem>

namespace stagecraft::engine {

Expected<Plan> presetPlan(std::string_view name)
{
    std::string known;
    for (const PresetPlan& preset : presetPlans()) {
        if (preset.name == name) {
            Expected<Plan> plan = readPlan(preset.json);
            if (!plan.ok()) return plan.error().in(preset.name);
            return plan;
        }
        known += (known.empty() ? "" : ", ") + preset.name;
    }
    return Error{fmt::format("there is no plan named \"{}\"; known are {}", name, known)};
}

Expected<Plan> planNamed(const std::string& nameOrFile)
{
    std::error_code ignored;
    if (std::filesystem::is_regular_file(nameOrFile, ignored)) return loadPlan(nameOrFile);
    std::string known;
    for (const PresetPlan& preset : presetPlans()) {
        if (preset.name == nameOrFile) return presetPlan(nameOrFile);
        known += (known.empty() ? "" : ", ") + preset.name;
    }
    if (std::filesystem::exists(nameOrFile, ignored)) return loadPlan(nameOrFile); // a pipe, or an error that says what it is
    return Error{fmt::format("'{}' is neither a plan file nor a preset; give a file that exists, or one of: {}", nameOrFile, known)};
}

} // namespace stagecraft::engine
