// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"

#include "engine/runtime/local_session.h"

namespace stagecraft::cli {

Expected<std::unique_ptr<engine::Session>> makeSession() { return runtime::makeLocalSession(); }

LibTorchBuild libTorchBuild() { return {.version = STAGECRAFT_LIBTORCH_VERSION, .library = STAGECRAFT_LIBTORCH_LIBRARY}; }

} // namespace stagecraft::cli
