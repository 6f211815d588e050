// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_argument.h"

#include "engine/plan/plan_json.h"
#include "traces/format/input_file.h"

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

int refused(const engine::Plan& opened, const engine::Plan& asked, const Error& reason)
{
    const bool byOptions = !(asked == opened) && engine::checkPlan(opened).ok();
    return byOptions ? wrongUse(reason) : failed(reason);
}

} // namespace stagecraft::cli
