// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/validate_updates.h"

#include "engine/schedule/milestones.h"
#include "engine/schedule/weight_versions.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

bool makesGradient(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::WeightGrad; }

void checkSynchronous(const Schedule& schedule, Rank rank, const ReportFault& fault)
{
    struct StageState {
        int lastGradient = -1; // position
        int update = -1;       // position
    };
    std::vector<StageState> states(2 * schedule.stageToRank.size());
    const std::vector<Action>& order = schedule.order[index(rank)];
    const auto stateOf = [&](const traces::Work& work) -> StageState& {
        return states[index(work.stage) + (work.flow == Flow::Up ? schedule.stageToRank.size() : 0)];
    };
    for (std::size_t at = 0; at < order.size(); ++at)
        forEachWork(order[at], [&](const traces::Work& work) {
            if (makesGradient(work.kind)) stateOf(work).lastGradient = static_cast<int>(at);
        });
    for (std::size_t at = 0; at < order.size(); ++at) {
        const Action& action = order[at];
        if (action.kind() != ActionKind::Optimizer) continue;
        StageState& state = stateOf(action.work);
        const int position = static_cast<int>(at);
        if (state.lastGradient < 0) {
            fault(rank, position, toText(action), "has nothing to update by, the stage makes no gradient; remove it");
        } else if (position < state.lastGradient) {
            fault(rank, position, toText(action),
                  fmt::format("comes before {} (position {}), whose gradient it needs; move it behind",
                              toText(order[static_cast<std::size_t>(state.lastGradient)]), state.lastGradient));
        } else if (state.update >= 0) {
            fault(rank, position, toText(action),
                  fmt::format("is there twice, first at position {}; a synchronous step updates a stage once", state.update));
        }
        if (state.update < 0) state.update = position;
    }
}

class AsynchronousRank {
public:
    AsynchronousRank(const Schedule& schedule, const std::vector<int>& entry, Rank rank, const ReportFault& fault)
        : schedule_(schedule), entry_(entry), rank_(rank), fault_(fault), group_(schedule.microbatchesPerUpdate),
          groups_((schedule.microbatches - 1) / group_ + 1), stages_(schedule.stageToRank.size())
    {
    }

    void check()
    {
        const std::vector<Action>& order = schedule_.order[index(rank_)];
        for (std::size_t at = 0; at < order.size(); ++at)
            forEachWork(order[at], [&](const traces::Work& work) { take(static_cast<int>(at), order[at], work); });
        for (std::size_t s = 0; s < stages_.size(); ++s)
            if (schedule_.stageToRank[s] == rank_ && stages_[s].updates < groups_)
                fault_(rank_, -1, updateText(Stage{s}, stages_[s].updates),
                       fmt::format("is missing; the weights of a stage change after every {}", traces::counted(group_, "micro-batch")));
    }

private:
    struct StageState {
        int updates = 0;
        int gradients = 0; // of the group that comes next
    };

    [[nodiscard]] int lastOf(int group) const { return std::min((group + 1) * group_, schedule_.microbatches) - 1; }
    [[nodiscard]] int sizeOf(int group) const { return lastOf(group) - group * group_ + 1; }
    [[nodiscard]] std::string updateText(Stage stage, int group) const
    {
        return toText(traces::makeAction(ActionKind::Optimizer, stage, MicroBatch{lastOf(group)}));
    }

    // That the forward of a micro-batch goes by; of Stashed whichever is there.
    [[nodiscard]] int versionOf(MicroBatch microbatch) const
    {
        if (schedule_.updates == UpdateRule::DoubleBuffered) return microbatch.value / group_ - 1;
        return entry_.empty() ? 0 : entry_[index(microbatch)];
    }

    void take(int at, const Action& action, const traces::Work& work)
    {
        StageState& stage = stages_[index(work.stage)];
        const int group = work.microbatch.value / group_;
        if (work.kind == ActionKind::Optimizer) return update(at, action, stage);
        const int needed = work.kind == ActionKind::Forward ? versionOf(work.microbatch) : makesGradient(work.kind) ? group : 0;
        if (stage.updates < needed)
            return fault_(rank_, at, toText(action),
                          fmt::format("comes before {}, {}; move it behind", updateText(work.stage, needed - 1),
                                      work.kind == ActionKind::Forward ? "whose weights it takes" : "which is of the micro-batches before it"));
        if (!makesGradient(work.kind)) return;
        if (stage.updates > group)
            return fault_(rank_, at, toText(action), fmt::format("comes after {}, which needs its gradient; move it before", updateText(work.stage, group)));
        ++stage.gradients;
    }

    void update(int at, const Action& action, StageState& stage)
    {
        if (stage.updates == groups_)
            return fault_(rank_, at, toText(action),
                          fmt::format("is one too many; {} make {}", traces::counted(schedule_.microbatches, "micro-batch"), traces::counted(groups_, "update")));
        const int last = lastOf(stage.updates);
        if (action.microbatch() != traces::kNoMicroBatch && action.microbatch().value != last)
            return fault_(rank_, at, toText(action),
                          fmt::format("names micro-batch {}, but the update that comes next is after micro-batch {}", action.microbatch().value, last));
        if (stage.gradients < sizeOf(stage.updates))
            return fault_(rank_, at, toText(action),
                          fmt::format("comes when {} of its {} are there; move it behind them", traces::counted(stage.gradients, "gradient"), sizeOf(stage.updates)));
        ++stage.updates;
        stage.gradients = 0;
    }

    const Schedule& schedule_;
    const std::vector<int>& entry_; // versionsAtEntry()
    Rank rank_;
    const ReportFault& fault_;
    int group_;
    int groups_; // of the whole schedule
    std::vector<StageState> stages_;
};

} // namespace

void checkUpdates(const Schedule& schedule, const ReportFault& fault)
{
    const std::vector<int> entry = versionsAtEntry(schedule);
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        if (schedule.asynchronous()) AsynchronousRank(schedule, entry, Rank{r}, fault).check();
        else checkSynchronous(schedule, Rank{r}, fault);
    }
}

} // namespace stagecraft::engine
