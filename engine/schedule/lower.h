// SPDX-License-Identifier: Apache-2.0
//
// Lowering: from a schedule of computing actions to one with SEND and RECV, by PyTorch's rule (_add_send_recv): ranks are
// visited in turn, each executes its next action if it can; a SEND follows its producer at once, and the matching RECV is
// appended to the other rank's list at that same moment. No communication between stages of one rank.
//
//   lowerCommunication(gpipe).value().order[1] -> 1RECV_F0,1F0,...
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

// An error where the schedule has communication already, or cannot be executed.
Expected<Schedule> lowerCommunication(const Schedule& schedule);

// The computing actions alone, in their order: what lowerCommunication() would start from. Of a legal schedule it is legal.
Schedule withoutCommunication(Schedule schedule);

[[nodiscard]] bool hasCommunication(const Schedule& schedule);

} // namespace stagecraft::engine
