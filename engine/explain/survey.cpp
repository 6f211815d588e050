// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/survey.h"

#include "engine/explain/family_shape.h"
#include "engine/explain/traffic.h"
#include "engine/schedule/weight_versions.h"
#include "engine/simulate/simulate.h"

#include <algorithm>
#include <utility>

namespace stagecraft::engine {
namespace {

using traces::ActionKind;

int weightCopies(const Schedule& schedule)
{
    if (schedule.twoDirections()) return 2;
    if (!schedule.asynchronous()) return 1;
    int most = 1;
    for (const StageVersions& stage : weightVersions(schedule)) most = std::max(most, stage.kept);
    return most;
}

long long copiesIn(const Schedule& schedule)
{
    long long count = 0;
    for (const std::vector<Action>& list : schedule.order)
        count += std::ranges::count_if(list, [](const Action& action) { return action.kind() == ActionKind::Offload; });
    return count;
}

void fill(SurveyEntry& entry, const Schedule& schedule, const CostTable& costs)
{
    for (const traces::RankFigures& rank : entry.figures.ranks) {
        entry.peakActivations = std::max(entry.peakActivations, rank.peakActivations);
        entry.peakMemory = std::max(entry.peakMemory, rank.peakMemory);
    }
    for (const LinkTraffic& link : trafficOf(schedule, costs)) {
        entry.handOffs += link.messages - link.copies;
        entry.sentBytes += link.bytes - link.copiedBytes;
    }
    entry.copies = copiesIn(schedule);
    entry.weightCopies = weightCopies(schedule);
    entry.forms = formsBeside(entry.plan.pipeline, costs);
}

} // namespace

SurveyEntry survey(const Plan& plan, const ScheduleFamily& family, const std::stop_token& stop)
{
    return survey(withSchedule(plan, family.name), stop);
}

SurveyEntry survey(Plan plan, const std::stop_token& stop)
{
    SurveyEntry entry{.family = findFamily(plan.pipeline.schedule), .plan = std::move(plan), .refusal = {}};
    const auto refuse = [&](const Error& error) {
        entry.refusal = error.message;
        entry.nearest = judgeSchedule(entry.plan).nearest;
        return std::move(entry);
    };
    if (Expected<void> sound = checkPlan(entry.plan); !sound.ok()) return refuse(sound.error());
    const Expected<CostTable> costs = costsOf(entry.plan);
    if (!costs.ok()) return refuse(costs.error());
    const Expected<Schedule> schedule = scheduleOf(entry.plan, stop);
    if (!schedule.ok()) return refuse(schedule.error());
    Expected<traces::Trace> trace = simulate(schedule.value(), costs.value(), stop);
    if (!trace.ok()) return refuse(trace.error());
    Expected<traces::StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) return refuse(figures.error());
    entry.figures = std::move(figures).value();
    fill(entry, schedule.value(), costs.value());
    entry.trace = std::make_shared<const traces::Trace>(std::move(trace).value());
    return entry;
}

} // namespace stagecraft::engine
