// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/finished_steps.h"

#include <algorithm>

namespace stagecraft::traces {

FinishedSteps::FinishedSteps(const Trace& trace, Growth growth)
{
    const bool byRun = trace.info.label == TraceLabel::Measured || trace.info.label == TraceLabel::Emulated;
    all_ = trace.steps().empty() && !byRun && growth == Growth::Closed;
    for (const StepSpan& step : trace.steps()) told_.push_back(step.step);
    std::sort(told_.begin(), told_.end());
}

bool FinishedSteps::contains(Step step) const { return all_ || std::binary_search(told_.begin(), told_.end(), step); }

} // namespace stagecraft::traces
