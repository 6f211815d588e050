// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"

#include "engine/runtime/capabilities.h"
#include "engine/runtime/local_session.h"

#include <fmt/format.h>

#include <utility>

namespace stagecraft::cli {

Expected<std::unique_ptr<engine::Session>> makeSession() { return runtime::makeLocalSession(); }

Expected<void> enterLiveEngine() { return {}; }

LibTorchBuild libTorchBuild()
{
    const runtime::RuntimeCapabilities found = runtime::runtimeCapabilities();
    std::string abilities = found.vectorUnits;
    for (const auto& [name, version] :
         {std::pair{"MKL", found.mkl}, std::pair{"oneDNN", found.oneDnn}, std::pair{"OpenMP", found.openMp}}) {
        if (!version.empty()) abilities += fmt::format(", {} {}", name, version);
    }
    return {.version = found.torchVersion, .library = STAGECRAFT_LIBTORCH_LIBRARY, .abilities = std::move(abilities)};
}

} // namespace stagecraft::cli
