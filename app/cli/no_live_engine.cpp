// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"

namespace stagecraft::cli {

Expected<std::unique_ptr<engine::Session>> makeSession()
{
    return Error{
        "this build has no LibTorch, so nothing can really run; build with -DSTAGECRAFT_WITH_TORCH=ON (./run sets that up), "
        "or simulate the plan instead: stagecraft-cli simulate PLAN"};
}

bool couldBegin(const engine::Plan&) { return true; }

Expected<void> enterLiveEngine() { return makeSession().error(); }

Expected<std::unique_ptr<Team>> joinTeam(const Launch&) { return makeSession().error(); }

LibTorchBuild libTorchBuild() { return {}; }

} // namespace stagecraft::cli
