// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/unit_streams.h"

#include <algorithm>

namespace stagecraft::runtime {

using namespace traces;

UnitStreams::UnitStreams(const std::vector<Action>& list)
{
    for (const Action& action : list)
        if (action.kind() == ActionKind::Overlap && of(action.partner) == 0) second_.insert(unitOf(action.work));
}

std::size_t UnitStreams::of(const Work& work) const
{
    return second_.contains(unitOf(work)) ? 1 : 0;
}

bool runsPairsSideBySide(const engine::Schedule& schedule, Rank rank)
{
    if (schedule.slices > 1 || schedule.asynchronous()) return false;
    const std::vector<Action>& list = schedule.order[index(rank)];
    return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.kind() == ActionKind::Overlap; });
}

} // namespace stagecraft::runtime
