// SPDX-License-Identifier: Apache-2.0
//
// The figures of a step for people: the step's own, each bubble with its formula, then a table of the ranks.
#pragma once

#include "traces/analysis/figures.h"

#include <string>

namespace stagecraft::cli {

std::string ranksText(const traces::StepFigures& figures);
std::string figuresText(const traces::StepFigures& figures);

// "1f1b, 4 ranks, 2 chunks, 8 micro-batches"
std::string shapeText(const traces::TraceInfo& info);

} // namespace stagecraft::cli
