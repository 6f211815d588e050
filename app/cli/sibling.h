// SPDX-License-Identifier: Apache-2.0
//
// Programs that are installed beside this one.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace stagecraft::cli {

// The folder of the running program; empty where the system does not tell.
std::filesystem::path programFolder();

// The program of that name in the same folder, if it is there and can be executed.
std::optional<std::filesystem::path> siblingProgram(std::string_view name);

} // namespace stagecraft::cli
