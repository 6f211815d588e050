// SPDX-License-Identifier: Apache-2.0
//
// How many micro-batches' activations a rank has in flight at most: +1/v at F, -1/v at B or W, 1/(v slices) of each; where
// nothing comes back (TraceInfo::inference), -1/v at the end of F. What an OFFLOAD
// takes away is gone at the end of its copy, and there again from the begin of the RELOAD on; another rank that keeps it meanwhile
// has the same slices on a copy lane of its own, and holds it from the begin of the one to the end of the other.
#pragma once

#include "traces/analysis/step_view.h"

namespace stagecraft::traces {

// In micro-batches of a whole rank.
double peakActivations(const Trace& trace, const RankView& rank);

// Is the stage of an action on that rank? Where a trace does not say where stages lie: yes.
bool isStageOf(const TraceInfo& info, const Work& work, Rank rank);

} // namespace stagecraft::traces
