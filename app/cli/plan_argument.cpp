// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_argument.h"

#include "engine/plan/plan_json.h"
#include "engine/schedule/circle_text.h"
#include "traces/format/input_file.h"

#include <filesystem>
#include <utility>

namespace stagecraft::cli {

Expected<engine::Plan> openPlan(const std::string& nameOrFile, const Overrides& overrides)
{
    Expected<engine::Plan> plan = nameOrFile.empty() ? engine::Plan{} : engine::planNamed(nameOrFile);
    return plan.ok() ? withScheduleFile(std::move(plan).value(), overrides) : plan;
}

Expected<engine::Plan> withScheduleFile(engine::Plan plan, const Overrides& overrides)
{
    if (!namesScheduleFile(overrides)) return plan;
    Expected<std::string> text = traces::readWholeFile(*overrides.schedule);
    if (!text.ok()) return text.error();
    Expected<engine::Plan> ordered = engine::withCustomSchedule(std::move(plan), std::move(text).value());
    return ordered.ok() ? ordered : ordered.error().in(*overrides.schedule);
}

bool comesOnce(const std::string& nameOrFile, const Overrides& overrides)
{
    const auto isStream = [](const std::string& file) {
        std::error_code ignored;
        const std::filesystem::file_status status = std::filesystem::status(file, ignored);
        return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status);
    };
    return isStream(nameOrFile) || (namesScheduleFile(overrides) && isStream(*overrides.schedule));
}

Expected<void> checkOrder(const engine::Plan& plan, const std::string& nameOrFile, const Overrides& overrides)
{
    if (plan.pipeline.schedule != "custom") return {};
    const Expected<engine::Schedule> schedule = engine::scheduleOf(plan);
    if (!schedule.ok()) return schedule.error();
    const engine::ValidationReport report = engine::validate(schedule.value());
    if (report.deadlock.empty()) return {};
    const Error deadlock = engine::deadlockError(report.deadlock);
    return namesScheduleFile(overrides) ? deadlock.in(*overrides.schedule) : deadlock.in("pipeline.custom_schedule").in(nameOrFile);
}

int refused(const engine::Plan& opened, const engine::Plan& asked, const Error& reason)
{
    const bool byOptions = !(asked == opened) && engine::checkPlan(opened).ok();
    return byOptions ? wrongUse(reason) : failed(reason);
}

} // namespace stagecraft::cli
