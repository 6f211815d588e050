// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_json.h"

#include <fmt/format.h>

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

} // namespace stagecraft::engine
