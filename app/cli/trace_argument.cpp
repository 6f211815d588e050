// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_argument.h"

#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace stagecraft::cli {

namespace {

constexpr std::array<std::string_view, 4> kExtensions{".strace", ".json", ".json.gz", ".csv"};

} // namespace

Expected<void> checkTraceTarget(const std::string& file)
{
    if (file.empty()) return {};
    const bool known = std::any_of(kExtensions.begin(), kExtensions.end(), [&](std::string_view extension) {
        return file.size() > extension.size() && file.ends_with(extension);
    });
    if (!known)
        return Error{fmt::format("{}: a trace is written as one of {}; choose the file's name so", file,
                                 fmt::join(kExtensions, " "))};

    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
        return Error{fmt::format("{}: the folder {} does not exist; make it first", file, folder.string())};
    }
    if (std::filesystem::is_directory(file, ignored))
        return Error{fmt::format("{}: this is a folder; give a file's name", file)};
    return {};
}

Expected<void> saveTraceTo(traces::Trace& trace, const engine::Plan& plan, const std::string& file)
{
    if (trace.info.planJson.empty()) trace.info.planJson = engine::writePlan(plan);
    return traces::saveTrace(trace, file);
}

std::string traceTargetHelp()
{
    return fmt::format("Write the trace: {} (own journal), {} or {} (Chrome/Perfetto), {}", kExtensions[0], kExtensions[1],
                       kExtensions[2], kExtensions[3]);
}

} // namespace stagecraft::cli
