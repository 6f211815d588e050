// SPDX-License-Identifier: Apache-2.0
//
// A folder that is written whole or not at all: its files go to a temporary folder beside it, which takes its name when all of them
// are on the disk. Until then, and whatever goes wrong, an older folder of that name stays as it was. What a killed process leaves
// behind is a folder whose name begins with a dot.
//
//   Expected<void> written = writeWholeFolder("runs/step-0000010", [&](const std::filesystem::path& folder) {
//       return writeWholeFile(folder / "checkpoint.json", text, Durability::OnDisk);
//   });
#pragma once

#include "traces/base/expected.h"

#include <filesystem>
#include <functional>
#include <vector>

namespace stagecraft::engine {

// `fill` puts the files into the folder that it is given, each on the disk when it returns.
traces::Expected<void> writeWholeFolder(const std::filesystem::path& folder,
                                        const std::function<traces::Expected<void>(const std::filesystem::path&)>& fill);

// Of an absolute folder and those around it, the ones that are not there, the innermost first: where such are made, the name of each has
// to reach the disk with the folder that it is in.
std::vector<std::filesystem::path> missingFolders(const std::filesystem::path& folder);

} // namespace stagecraft::engine
