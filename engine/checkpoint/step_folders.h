// SPDX-License-Identifier: Apache-2.0
//
// The names of the folders that checkpoints lie in, one for each step: "step-0000010". Private to the engine's checkpoints.
//
//   latestStepIn("runs/a")->path == "runs/a/step-0000020"
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stagecraft::engine {

inline constexpr const char* kCheckpointDescription = "checkpoint.json"; // a folder without it is no checkpoint

std::string stepFolderName(int step);

struct StepFolder {
    std::filesystem::path path;
    int step = 0; // as its name says
};
// Nothing where there is none, or no such folder.
std::optional<StepFolder> latestStepIn(const std::filesystem::path& folder);

} // namespace stagecraft::engine
