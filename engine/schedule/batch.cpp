// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/batch.h"

#include <algorithm>

namespace stagecraft::engine {

bool joinsNext(const std::vector<Action>& list, std::size_t at)
{
    const Action& action = list[at];
    return traces::isTransfer(action.kind()) && action.partner.kind != ActionKind::None && at + 1 < list.size() &&
           list[at + 1].work == action.partner;
}

std::size_t batchEnd(const std::vector<Action>& list, std::size_t at)
{
    const std::size_t most = std::min(list.size(), at + kMaxBatch);
    while (at + 1 < most && joinsNext(list, at)) ++at;
    return at + 1;
}

void appendBatch(std::vector<Action>& list, const std::vector<Action>& transfers)
{
    for (std::size_t i = 0; i < transfers.size(); ++i)
        list.push_back({transfers[i].work, i + 1 < transfers.size() ? transfers[i + 1].work : traces::Work{}});
}

Schedule withoutBatches(Schedule schedule)
{
    for (std::vector<Action>& list : schedule.order)
        for (Action& action : list)
            if (traces::isTransfer(action.kind())) action.partner = {};
    return schedule;
}

} // namespace stagecraft::engine
