// SPDX-License-Identifier: Apache-2.0
//
// The rules behind lowerCommunication(), a file each; lower.h tells what they do. They expect a schedule that can be executed and has
// no communication yet.
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

Schedule lowerDeferred(const Schedule& schedule);
// An error where Megatron-LM has no such order of actions.
Expected<Schedule> lowerByMegatron(const Schedule& schedule);

} // namespace stagecraft::engine
