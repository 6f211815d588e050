// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/step_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

namespace stagecraft::engine {
namespace {

constexpr std::string_view kStep = "step-";

std::optional<int> stepOf(const std::string& name)
{
    const std::string digits = name.starts_with(kStep) ? name.substr(kStep.size()) : "";
    const bool number = !digits.empty() && digits.size() < 10 && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) return std::nullopt;
    return std::stoi(digits);
}

} // namespace

std::string stepFolderName(int step) { return fmt::format("{}{:07}", kStep, step); }

std::optional<StepFolder> latestStepIn(const std::filesystem::path& folder)
{
    std::error_code failed;
    std::optional<StepFolder> latest;
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, failed)) {
        const std::optional<int> step = stepOf(entry.path().filename().string());
        if (!step || (latest && *step <= latest->step) || !std::filesystem::exists(entry.path() / kCheckpointDescription, failed)) continue;
        latest = StepFolder{entry.path(), *step};
    }
    return latest;
}

} // namespace stagecraft::engine
