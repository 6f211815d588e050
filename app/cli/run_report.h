// SPDX-License-Identifier: Apache-2.0
//
// What a finished run measured, for a reader and for a program.
//
//   const std::optional<traces::StepFigures> figures = middleFigures(run.trace);
//   print(json ? jsonText(resultJson(run, figures)) : resultText(run, figures));
#pragma once

#include "app/cli/figures_json.h"
#include "app/cli/live_run.h"
#include "traces/analysis/figures.h"

#include <optional>
#include <string>

namespace stagecraft::cli {

// Figures of the step whose time is the run's step time; none where its events were lost.
std::optional<traces::StepFigures> middleFigures(const traces::Trace& trace);

// Of a run that has a result.
Json resultJson(const LiveRun& run, const std::optional<traces::StepFigures>& figures);
std::string resultText(const LiveRun& run, const std::optional<traces::StepFigures>& figures);

} // namespace stagecraft::cli
