// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/handoff.h"
#include "engine/schedule/lowering_rules.h"
#include "engine/schedule/milestones.h"

namespace stagecraft::engine {

Schedule lowerDeferred(const Schedule& schedule)
{
    Schedule lowered = schedule;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        std::vector<Action>& list = lowered.order[r];
        list.clear();
        for (const Action& action : schedule.order[r]) {
            forEachWork(action, [&](const traces::Work& work) {
                if (const std::optional<Handoff> input = inputOf(schedule, work)) list.push_back(input->recv);
            });
            list.push_back(action);
            forEachWork(action, [&](const traces::Work& work) {
                if (const std::optional<Handoff> output = outputOf(schedule, work)) list.push_back(output->send);
            });
        }
    }
    return lowered;
}

} // namespace stagecraft::engine
