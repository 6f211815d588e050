// SPDX-License-Identifier: Apache-2.0
//
// Traces as files, by extension:
//
//   .strace            the journal: everything a trace holds
//   .json  .json.gz    Chrome trace JSON, for Perfetto and the like
//   .csv               a table of the actions; written only
//
//   if (auto saved = saveTrace(trace, "run.json.gz"); !saved.ok()) report(saved.error());
//
// A file is written whole or not at all. Errors name the file, the reason and, for other extensions, those that are known.
#pragma once

#include "traces/store/trace.h"

#include <filesystem>

namespace stagecraft::traces {

Expected<Trace> loadTrace(const std::filesystem::path& file);
Expected<void> saveTrace(const Trace& trace, const std::filesystem::path& file);

// A file for each rank, rank0.json.gz and so on, in a folder that is made where it does not exist: the form in which
// HolisticTraceAnalysis reads a distributed run. Arrows between ranks have no place in it.
Expected<void> saveRankFiles(const Trace& trace, const std::filesystem::path& folder);

} // namespace stagecraft::traces
