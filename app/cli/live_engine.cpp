// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"

#include "engine/runtime/local_session.h"

namespace stagecraft::cli {

Expected<std::unique_ptr<engine::Session>> makeSession() { return runtime::makeLocalSession(); }

std::string libTorchVersion() { return STAGECRAFT_LIBTORCH_VERSION; }

} // namespace stagecraft::cli
