// SPDX-License-Identifier: Apache-2.0
//
// The live engine, as far as this build has it: the one place of the command line that knows whether LibTorch is linked.
#pragma once

#include "app/cli/command.h"
#include "engine/session/session.h"

#include <memory>

namespace stagecraft::cli {

// A session in this process; an error with the remedy in a build without LibTorch.
Expected<std::unique_ptr<engine::Session>> makeSession();

// "2.11.0"; empty in a build without LibTorch.
std::string libTorchVersion();

} // namespace stagecraft::cli
