// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sibling.h"

#include <unistd.h>

namespace stagecraft::cli {

std::filesystem::path programFolder()
{
    std::error_code unknown;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
    return unknown ? std::filesystem::path{} : self.parent_path();
}

std::optional<std::filesystem::path> siblingProgram(std::string_view name)
{
    const std::filesystem::path program = programFolder() / name;
    if (::access(program.c_str(), X_OK) != 0) return std::nullopt;
    return program;
}

} // namespace stagecraft::cli
