// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/custom_schedule.h"

#include "engine/schedule/validate.h"

#include <fmt/format.h>

#include <utility>

namespace stagecraft::ui {

using engine::Error;
using engine::Expected;
using engine::Plan;

Expected<Plan> withCustomSchedule(Plan plan, std::string text)
{
    const Expected<engine::Schedule> parsed = engine::parseSchedule(text);
    if (!parsed.ok()) return parsed.error();
    const engine::Schedule& schedule = parsed.value();
    if (schedule.stages() % schedule.ranks != 0)
        return Error{fmt::format("its {} stages lie unevenly on {} ranks; here every rank must hold the same number of stages",
                                 schedule.stages(), schedule.ranks)};
    plan = withShape(std::move(plan), schedule.ranks, schedule.stages() / schedule.ranks);
    plan.pipeline.schedule = "custom";
    plan.pipeline.microbatches = schedule.microbatches;
    plan.pipeline.customSchedule = std::move(text);
    if (const Expected<engine::Schedule> sound = scheduleOf(plan); !sound.ok()) return sound.error();
    return plan;
}

} // namespace stagecraft::ui
