// SPDX-License-Identifier: Apache-2.0
//
// Traces as files, written by extension. One is read by what it holds, whatever its name is; by its extension where that does not tell, and
// from a pipe.
//
//   .strace            the journal: everything a trace holds
//   .json  .json.gz    Chrome trace JSON, for Perfetto and the like
//   .csv               a table of the actions; written only
//
//   if (auto saved = saveTrace(trace, "run.json.gz"); !saved.ok()) report(saved.error());
//
// A file is written whole or not at all. Errors name the file, the reason and, for other extensions, those that are known.
#pragma once

#include "traces/format/file_watch.h"
#include "traces/store/trace.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

namespace stagecraft::traces {

enum class TraceForm { Journal, Json, JsonGzip, Csv };
inline constexpr std::array<std::string_view, 4> kTraceExtensions{".strace", ".json", ".json.gz", ".csv"}; // of TraceForm

// By the extension, in any case of letters; nothing where it is none of ours.
std::optional<TraceForm> traceFormOf(const std::filesystem::path& file);

Expected<Trace> loadTrace(const std::filesystem::path& file, const FileWatch& watch = {});
Expected<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch = {});

// A file for each rank, rank0.json.gz and so on, in a folder that is made where it does not exist: the form in which
// HolisticTraceAnalysis reads a distributed run. Arrows between ranks have no place in it. Gives the number of files.
Expected<std::size_t> saveRankFiles(const Trace& trace, const std::filesystem::path& folder);

} // namespace stagecraft::traces
