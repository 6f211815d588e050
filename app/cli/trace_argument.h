// SPDX-License-Identifier: Apache-2.0
//
// Trace files on the command line: where a trace may be written, checked before the work begins, and writing it.
#pragma once

#include "app/cli/command.h"
#include "engine/plan/plan.h"
#include "traces/store/trace.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

// The extension is one that can be written and the folder exists. The empty text (no --trace) is fine.
Expected<void> checkTraceTarget(const std::string& file);

// By extension; a trace that knows its plan keeps it, so that it can be opened as a plan again.
Expected<void> saveTraceTo(traces::Trace& trace, const engine::Plan& plan, const std::string& file);

// One trace, or the parts that the ranks of a run in processes wrote, as one.
Expected<traces::Trace> loadTraces(const std::vector<std::string>& files);

std::string traceTargetHelp();

} // namespace stagecraft::cli
