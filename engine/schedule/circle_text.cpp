// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/circle_text.h"

#include <fmt/format.h>

namespace stagecraft::engine {

std::string circleText(const std::vector<WaitingRank>& circle)
{
    std::string text;
    for (const WaitingRank& waiting : circle)
        text += fmt::format("{}rank {} at position {} ({}) waits for {} on rank {}{}", text.empty() ? "" : "; ", waiting.rank.value, waiting.position,
                            waiting.action, waiting.waitsFor, waiting.waitsForRank.value, waiting.why.empty() ? "" : ", because " + waiting.why);
    return text;
}

Error deadlockError(const std::vector<WaitingRank>& circle)
{
    return Error{fmt::format("the schedule deadlocks, each waits for the next: {}. Change the order of one of these ranks, so that what another waits for "
                             "comes before it waits itself; stagecraft-cli validate FILE tells whether it is right",
                             circleText(circle))};
}

} // namespace stagecraft::engine
