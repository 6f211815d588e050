// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/recompute.h"

#include <set>
#include <utility>

namespace stagecraft::engine {
namespace {

std::vector<Action> withRecompute(const std::vector<Action>& order)
{
    std::set<traces::Work> again;
    std::vector<Action> list;
    list.reserve(order.size() + order.size() / 2);
    for (const Action& action : order) {
        const traces::Work& back = action.kind() == ActionKind::Overlap ? action.partner : action.work;
        traces::Work recompute = back;
        recompute.kind = ActionKind::Recompute;
        const bool needs = back.kind == ActionKind::Backward || back.kind == ActionKind::InputGrad;
        if (needs && !again.contains(recompute)) list.push_back({recompute, {}});
        if (action.kind() == ActionKind::Recompute) again.insert(action.work);
        list.push_back(action);
    }
    return list;
}

} // namespace

Schedule withRecompute(Schedule schedule)
{
    for (std::vector<Action>& order : schedule.order) order = withRecompute(std::as_const(order));
    return schedule;
}

} // namespace stagecraft::engine
