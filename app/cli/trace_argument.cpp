// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_argument.h"

#include "engine/plan/plan_json.h"
#include "traces/analysis/merge_ranks.h"
#include "traces/format/output_file.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
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
        if (std::filesystem::exists(std::filesystem::symlink_status(folder, ignored))) return traces::writeError(file, ENOTDIR);
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

Expected<traces::Trace> loadTraces(const std::vector<std::string>& files)
{
    if (files.size() == 1) {
        Expected<traces::Trace> trace = traces::loadTrace(files.front());
        const bool lacksOthers = trace.ok() && trace.value().info.label == traces::TraceLabel::Measured && traces::isRankPart(trace.value());
        if (lacksOthers) trace.value().addNote("this is the part of one rank; give the parts of all ranks to see the run");
        return trace;
    }
    std::vector<traces::Trace> parts;
    for (const std::string& file : files) {
        Expected<traces::Trace> part = traces::loadTrace(file);
        if (!part.ok()) return part.error();
        if (!traces::isRankPart(part.value()))
            return Error{fmt::format("{}: only the parts of one run's ranks (RUN.rank0.strace, ...) are joined, and this is a whole trace; give it alone",
                                     file)};
        parts.push_back(std::move(part).value());
    }
    return traces::mergeRanks(parts, files);
}

std::string traceTargetHelp()
{
    const auto& names = traces::kTraceExtensions;
    return fmt::format("Write the trace: {} (own journal), {} or {} (Chrome/Perfetto), {}", names[0], names[1], names[2],
                       names[3]);
}

} // namespace stagecraft::cli
