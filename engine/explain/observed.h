// SPDX-License-Identifier: Apache-2.0
//
// A trace as a plan whose costs are what the trace shows, to be changed and simulated again (what_if.h). Pure; any thread.
//
//   Observed observed = observe(trace).value();
//   observed.plan.costs.measured[2].forward        ns, the median of stage 2 for a whole micro-batch
//
// Times are the medians per stage and kind of action (trace_model.h), per micro-batch. Sizes are those of the trace's plan or of its
// model, for a trace tells only what ranks hold altogether. Transfers: of a simulated or emulated trace those of its plan, which made
// them; of any other the median hand-off is the latency, whatever the size.
//
// What the trace does not tell:
//   I and W of a backward that was only seen whole   in the proportion of the plan's costs where the trace was simulated with them, or
//                                                    where they are of a run that measured them; else half of it each
//   a whole B that was only seen in parts            I + W
//   a pair of a forward and a backward               as the plan of a simulated trace says, else as long as both one after the other
#pragma once

#include "engine/plan/plan.h"
#include "traces/analysis/figures.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

// How the trace lets a backward be told as input gradient and weight gradient.
enum class BackwardSplit : std::uint8_t { Seen, ByPlan, Halves };
std::string_view backwardSplitKey(BackwardSplit split); // "seen", "plan", "halves"

struct Observed {
    Plan plan; // the trace's own, or one that follows from its order; its costs are those of the trace
    traces::TraceLabel label = traces::TraceLabel::Simulated;
    traces::Step step{}; // the one in the middle by time; the figures are its
    traces::StepFigures figures;
    std::size_t steps = 1;     // that the medians are over
    bool backward = true;      // anything came back: B, I, W or a pair
    bool wholeBackward = true; // B was seen
    bool pairs = false;        // OVERLAP was seen
    BackwardSplit split = BackwardSplit::Seen;
    std::vector<std::string> notes; // what a reader of every prediction should know
};

// Errors: no computing slice, no step that came to its end, an order that no plan can hold.
Expected<Observed> observe(const traces::Trace& trace);

} // namespace stagecraft::engine
