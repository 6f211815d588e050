// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole file of text, up to a bound: a device or a wrong name must not fill the memory. Errors name the file, the
// reason and what to do.
//
//   Expected<std::string> text = readWholeFile("my.plan.json");
#pragma once

#include "traces/base/expected.h"

#include <filesystem>
#include <string>

namespace stagecraft::traces {

// The longest schedule that can be executed takes less, and what else people write by hand far less.
inline constexpr std::size_t kMostText = std::size_t{256} << 20;

Expected<std::string> readWholeFile(const std::filesystem::path& file, std::size_t most = kMostText);

} // namespace stagecraft::traces
