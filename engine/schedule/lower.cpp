// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/lower.h"

#include "engine/schedule/dry_run.h"
#include "engine/schedule/handoff.h"
#include "engine/schedule/lowering_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {

bool hasCommunication(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& a) { return traces::isTransfer(a.kind()); });
    });
}

Schedule withoutCommunication(Schedule schedule)
{
    for (std::vector<Action>& list : schedule.order)
        std::erase_if(list, [](const Action& action) { return traces::isTransfer(action.kind()); });
    return schedule;
}

std::string_view loweringRuleName(LoweringRule rule)
{
    switch (rule) {
    case LoweringRule::PyTorch: return "pytorch";
    case LoweringRule::Megatron: return "megatron";
    case LoweringRule::Deferred: return "deferred";
    }
    return {};
}

std::optional<LoweringRule> loweringRuleOf(std::string_view name)
{
    const auto* known = std::find_if(kLoweringRules.begin(), kLoweringRules.end(), [&](LoweringRule r) { return loweringRuleName(r) == name; });
    return known == kLoweringRules.end() ? std::nullopt : std::optional(*known);
}

Expected<Schedule> lowerCommunication(const Schedule& schedule, LoweringRule rule)
{
    if (hasCommunication(schedule))
        return Error{fmt::format("schedule {}: it has SEND and RECV actions already", schedule.name)};
    Schedule lowered = schedule;
    for (std::vector<Action>& list : lowered.order) list.clear();
    DryRun run(schedule, SendMode::Buffered);
    run.execute([&](Rank rank, const Action& action) {
        lowered.order[index(rank)].push_back(action);
        forEachWork(action, [&](const traces::Work& work) {
            const std::optional<Handoff> output = outputOf(schedule, work);
            if (!output) return;
            lowered.order[index(rank)].push_back(output->send);
            lowered.order[index(output->to)].push_back(output->recv);
        });
    });
    if (!run.complete()) {
        const WaitingRank waiting = run.circle().front();
        return Error{fmt::format("schedule {}: it cannot be executed, rank {} waits at position {} ({}) for {}", schedule.name,
                                 waiting.rank.value, waiting.position, waiting.action, waiting.waitsFor)};
    }
    switch (rule) {
    case LoweringRule::PyTorch: break;
    case LoweringRule::Megatron: return lowerByMegatron(schedule);
    case LoweringRule::Deferred: return lowerDeferred(schedule);
    }
    return lowered;
}

} // namespace stagecraft::engine
