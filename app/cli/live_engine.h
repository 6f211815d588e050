// SPDX-License-Identifier: Apache-2.0
//
// The live engine, as far as this program has it. Each program of the command line links one file that answers:
// live_engine.cpp (stagecraft-live), start_live_engine.cpp (stagecraft-cli), no_live_engine.cpp (a build without LibTorch).
#pragma once

#include "app/cli/command.h"
#include "engine/session/session.h"

#include <filesystem>
#include <memory>
#include <string>

namespace stagecraft::cli {

// A session in this process; an error with the remedy in a build without LibTorch.
Expected<std::unique_ptr<engine::Session>> makeSession();

// Hands this process over to the program that links LibTorch, with the arguments as they were; returns only with the error
// that kept it from that. Does nothing where LibTorch is linked already.
Expected<void> enterLiveEngine();

// The LibTorch that this build is made for; empty without one.
struct LibTorchBuild {
    std::string version;           // "2.11.0"
    std::filesystem::path library; // libtorch_cpu.so
    std::string abilities;         // "AVX512, MKL ..."; empty where it is not loaded
};
LibTorchBuild libTorchBuild();

} // namespace stagecraft::cli
