// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_argument.h"

#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace stagecraft::cli {

Expected<void> checkTraceTarget(const std::string& file)
{
    if (file.empty()) return {};
    if (!traces::traceFormOf(file))
        return Error{fmt::format("{}: a trace is written as one of {}; choose the file's name so", file,
                                 fmt::join(traces::kTraceExtensions, " "))};

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
    const auto& names = traces::kTraceExtensions;
    return fmt::format("Write the trace: {} (own journal), {} or {} (Chrome/Perfetto), {}", names[0], names[1], names[2],
                       names[3]);
}

} // namespace stagecraft::cli
