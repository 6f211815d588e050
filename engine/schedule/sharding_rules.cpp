// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/sharding_rules.h"

#include "engine/schedule/milestones.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

struct Weights {
    bool divided = false;   // has UNSHARD or RESHARD
    bool gathered = false;  // at that point of the list
    int changed = -1;       // where it was gathered or given up last
    int lastGradient = -1;  // position of the last B or W
    int reduction = -1;     // of REDUCE_GRAD or ALL_REDUCE
    int lastUpdate = -1;    // of the last OPTIMIZER
    int updated = -1;       // of the last one before that point of the list
};

class Rules {
public:
    Rules(const Schedule& schedule, const ShardingFault& fault)
        : schedule_(schedule), fault_(fault), weights_(2 * static_cast<std::size_t>(schedule.stages()))
    {
    }

    void check()
    {
        bool reduces = false;
        forEachAction([&](Rank, int at, const Action& action, const traces::Work& work) {
            Weights& weights = of(work);
            if (work.kind == ActionKind::Unshard || work.kind == ActionKind::Reshard) weights.divided = true;
            if (work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad) weights.lastGradient = at;
            if (work.kind == ActionKind::Optimizer) weights.lastUpdate = at;
            reduces = reduces || action.kind() == ActionKind::ReduceGrad;
        });
        forEachAction([&](Rank rank, int at, const Action& action, const traces::Work& work) { check(rank, at, action, work); });
        if (!reduces) return;
        for (const Flow flow : schedule_.flows())
            for (int s = 0; s < schedule_.stages(); ++s) {
                const Action missing = traces::makeAction(ActionKind::ReduceGrad, Stage{s}, traces::kNoMicroBatch, flow);
                if (of(missing.work).reduction < 0)
                    fault_(schedule_.rankOf(flow, Stage{s}), -1, toText(missing), "is missing; gradients of other stages are reduced");
            }
    }

private:
    Weights& of(const traces::Work& work)
    {
        return weights_[index(work.stage) + (work.flow == Flow::Up ? static_cast<std::size_t>(schedule_.stages()) : 0)];
    }

    template <class Visit>
    void forEachAction(Visit&& visit)
    {
        for (std::size_t r = 0; r < schedule_.order.size(); ++r)
            for (std::size_t at = 0; at < schedule_.order[r].size(); ++at)
                forEachWork(schedule_.order[r][at],
                            [&](const traces::Work& work) { visit(Rank{r}, static_cast<int>(at), schedule_.order[r][at], work); });
    }

    void check(Rank rank, int at, const Action& action, const traces::Work& work)
    {
        Weights& weights = of(work);
        const auto fault = [&](const std::string& what) { fault_(rank, at, toText(action), what); };
        switch (work.kind) {
        case ActionKind::Unshard:
            if (weights.gathered) fault(fmt::format("gathers weights that are there since position {}; remove it", weights.changed));
            weights.gathered = true;
            weights.changed = at;
            return;
        case ActionKind::Reshard:
            if (!weights.gathered)
                fault(weights.changed < 0 ? "gives up weights that were never gathered; remove it"
                                          : fmt::format("gives up weights that are gone since position {}; remove it", weights.changed));
            weights.gathered = false;
            weights.changed = at;
            return;
        case ActionKind::ReduceGrad:
        case ActionKind::AllReduce:
            if (weights.reduction >= 0) fault(fmt::format("is there twice, first at position {}; gradients are reduced once", weights.reduction));
            else if (at < weights.lastGradient)
                fault(fmt::format("comes before position {}, the last to add to these gradients; move it behind", weights.lastGradient));
            else if (weights.lastUpdate >= 0 && at > weights.lastUpdate)
                fault(fmt::format("comes after {} (position {}), which needs these gradients; move it before",
                                  toText(traces::makeAction(ActionKind::Optimizer, work.stage, traces::kNoMicroBatch, work.flow)), weights.lastUpdate));
            weights.reduction = at;
            return;
        case ActionKind::Optimizer: weights.updated = at; return;
        case ActionKind::Forward:
        case ActionKind::Backward:
        case ActionKind::InputGrad:
        case ActionKind::WeightGrad:
        case ActionKind::Recompute:
            if (!weights.divided) return;
            if (weights.gathered) {
                if (weights.updated > weights.changed)
                    fault(fmt::format("uses weights as they were before the update at position {}; put {}RESHARD and {}UNSHARD before it",
                                      weights.updated, stageText(work), stageText(work)));
                return;
            }
            fault(weights.changed < 0 ? fmt::format("uses weights that are not gathered; put {}UNSHARD before it", stageText(work))
                                      : fmt::format("uses weights that were given up at position {}; put {}UNSHARD before it", weights.changed,
                                                    stageText(work)));
            return;
        default: return;
        }
    }

    static std::string stageText(const traces::Work& work)
    {
        return (work.flow == Flow::Single ? "" : work.flow == Flow::Up ? "u" : "d") + std::to_string(work.stage.value);
    }

    const Schedule& schedule_;
    const ShardingFault& fault_;
    std::vector<Weights> weights_; // by direction and stage
};

} // namespace

void checkSharding(const Schedule& schedule, const ShardingFault& fault) { Rules(schedule, fault).check(); }

} // namespace stagecraft::engine
