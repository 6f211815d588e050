// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_argument.h"

#include "engine/plan/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace stagecraft::cli {

namespace {

Expected<engine::Plan> namedPlan(const std::string& nameOrFile)
{

    std::error_code ignored;
    if (std::filesystem::is_regular_file(nameOrFile, ignored)) return engine::loadPlan(nameOrFile);

    const std::vector<engine::PresetPlan>& presets = engine::presetPlans();
    const auto isNamed = [&](const engine::PresetPlan& preset) { return preset.name == nameOrFile; };
    if (std::any_of(presets.begin(), presets.end(), isNamed)) return engine::presetPlan(nameOrFile);

    if (std::filesystem::exists(nameOrFile, ignored))
        return engine::loadPlan(nameOrFile); // a pipe, or an error that says what it is
    return Error{fmt::format("'{}' is neither a plan file nor a preset; give a file that exists, or one of: {}", nameOrFile,
                             presetNames())};
}

} // namespace

Expected<engine::Plan> openPlan(const std::string& nameOrFile, const Overrides& overrides)
{
    Expected<engine::Plan> plan = nameOrFile.empty() ? engine::Plan{} : namedPlan(nameOrFile);
    if (!plan.ok() || !namesScheduleFile(overrides)) return plan;
    return withScheduleFile(std::move(plan).value(), *overrides.schedule);
}

std::string presetNames()
{
    std::vector<std::string> names;
    for (const engine::PresetPlan& preset : engine::presetPlans()) names.push_back(preset.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

} // namespace stagecraft::cli
