// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session.h"

namespace stagecraft::engine {

std::string_view stateText(SessionState state)
{
    switch (state) {
    case SessionState::Idle: return "idle";
    case SessionState::Preparing: return "preparing";
    case SessionState::Running: return "running";
    case SessionState::Paused: return "paused";
    case SessionState::Stopping: return "stopping";
    case SessionState::Finished: return "finished";
    case SessionState::Stopped: return "stopped";
    case SessionState::Failed: return "failed";
    }
    return "";
}

} // namespace stagecraft::engine
