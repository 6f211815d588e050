// SPDX-License-Identifier: Apache-2.0
//
// Chrome trace JSON, the form that Perfetto, chrome://tracing and HolisticTraceAnalysis open. The rules of their readers
// that the writer keeps are listed in docs/file-formats.md.
//
//   saveChromeJson(trace, "run.json.gz");
//   Trace again = readChromeJson(text).value();   // figures as before
#pragma once

#include "traces/format/file_watch.h"
#include "traces/store/trace.h"

#include <functional>
#include <optional>
#include <string_view>

namespace stagecraft::traces {

struct ChromeJsonOptions {
    // Only this rank, with the "distributedInfo" by which HolisticTraceAnalysis tells the files of a folder apart.
    std::optional<Rank> rank;
};

// Calls the sink with pieces of some ten thousand bytes.
void writeChromeJson(const Trace& trace, const std::function<void(std::string_view)>& sink,
                     const ChromeJsonOptions& options = {});

// Reads what writeChromeJson wrote: labels, lanes, slices, edges, steps, pauses and memory. Files of other tools are refused
// with a message that says so. A watch that gives up throws WatchedWork::GivenUp here; trace_file.h makes an error of it.
Expected<Trace> readChromeJson(std::string_view json, const FileWatch& watch = {});

} // namespace stagecraft::traces
