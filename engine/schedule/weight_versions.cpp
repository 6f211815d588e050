// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/weight_versions.h"

#include "engine/schedule/milestones.h"
#include "engine/schedule/old_versions.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

// Walks one rank's order: what a micro-batch finds at its forward on each stage, or goes by because the first stage found it.
void followVersions(const Schedule& schedule, const std::vector<Action>& order, const std::vector<int>& entry, std::vector<StageVersions>& stages,
                    std::vector<OldVersions>& old)
{
    std::vector<int> held(stages.size(), 1);
    for (const Action& action : order)
        forEachWork(action, [&](const traces::Work& work) {
            StageVersions& stage = stages[index(work.stage)];
            int& versions = held[index(work.stage)];
            versions += old[index(work.stage)].atBegin(work);
            stage.kept = std::max(stage.kept, versions);
            if (work.kind == ActionKind::Forward) {
                int& version = stage.version[index(work.microbatch)];
                version = entry.empty() ? stage.updates : entry[index(work.microbatch)];
                stage.staleness = std::max(stage.staleness, work.microbatch.value / schedule.microbatchesPerUpdate - version);
            }
            versions += old[index(work.stage)].atEnd(work);
            if (work.kind == ActionKind::Optimizer) ++stage.updates;
        });
}

} // namespace

std::vector<StageVersions> weightVersions(const Schedule& schedule)
{
    const auto m = static_cast<std::size_t>(schedule.microbatches);
    std::vector<StageVersions> stages(schedule.stageToRank.size(), {.updates = 0, .version = std::vector<int>(m, 0)});
    if (schedule.updates == UpdateRule::Stashed || schedule.updates == UpdateRule::VerticalSync) {
        const std::vector<int> entry = versionsAtEntry(schedule);
        std::vector<OldVersions> old(stages.size(), OldVersions(schedule, entry));
        for (const std::vector<Action>& order : schedule.order) followVersions(schedule, order, entry, stages, old);
        return stages;
    }
    const int group = schedule.asynchronous() ? schedule.microbatchesPerUpdate : schedule.microbatches;
    for (StageVersions& stage : stages) {
        stage.updates = schedule.microbatches > 0 ? (schedule.microbatches - 1) / group + 1 : 0;
        if (!schedule.asynchronous()) continue;
        stage.kept = 2;
        stage.staleness = 1;
        for (int i = 0; i < schedule.microbatches; ++i) stage.version[static_cast<std::size_t>(i)] = std::max(0, i / group - 1);
    }
    return stages;
}

StageVersions versionsOfRank(const Schedule& schedule, const std::vector<StageVersions>& stages, Rank rank)
{
    StageVersions most;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        if (schedule.stageToRank[s] != rank) continue;
        most.kept = std::max(most.kept, stages[s].kept);
        most.staleness = std::max(most.staleness, stages[s].staleness);
        most.updates = std::max(most.updates, stages[s].updates);
    }
    return most;
}

std::vector<int> versionsAtEntry(const Schedule& schedule)
{
    if (schedule.updates != UpdateRule::VerticalSync) return {};
    std::vector<int> entry(static_cast<std::size_t>(schedule.microbatches), 0);
    int updates = 0;
    for (const Action& action : schedule.order[index(schedule.stageToRank.front())])
        forEachWork(action, [&](const traces::Work& work) {
            if (work.stage != Stage{0}) return;
            if (work.kind == ActionKind::Forward) entry[index(work.microbatch)] = updates;
            if (work.kind == ActionKind::Optimizer) ++updates;
        });
    return entry;
}

} // namespace stagecraft::engine
