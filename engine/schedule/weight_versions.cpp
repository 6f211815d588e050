// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/weight_versions.h"

#include "engine/schedule/milestones.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

// Walks one rank's order: what a micro-batch finds at its forward on each stage.
void followStashes(const Schedule& schedule, const std::vector<Action>& order, std::vector<StageVersions>& stages, std::vector<int>& inFlight)
{
    for (const Action& action : order)
        forEachWork(action, [&](const traces::Work& work) {
            StageVersions& stage = stages[index(work.stage)];
            int& flying = inFlight[index(work.stage)];
            switch (work.kind) {
            case ActionKind::Forward: {
                int& version = stage.version[index(work.microbatch)];
                version = stage.updates;
                stage.staleness = std::max(stage.staleness, work.microbatch.value / schedule.microbatchesPerUpdate - version);
                stage.kept = std::max(stage.kept, ++flying);
                break;
            }
            case ActionKind::Backward:
            case ActionKind::WeightGrad: --flying; break;
            case ActionKind::Optimizer: ++stage.updates; break;
            default: break;
            }
        });
}

} // namespace

std::vector<StageVersions> weightVersions(const Schedule& schedule)
{
    const auto m = static_cast<std::size_t>(schedule.microbatches);
    std::vector<StageVersions> stages(schedule.stageToRank.size(), {.updates = 0, .version = std::vector<int>(m, 0)});
    if (schedule.updates == UpdateRule::Stashed) {
        std::vector<int> inFlight(stages.size(), 0);
        for (const std::vector<Action>& order : schedule.order) followStashes(schedule, order, stages, inFlight);
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

} // namespace stagecraft::engine
