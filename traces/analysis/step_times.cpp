// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/step_times.h"

#include "traces/analysis/pauses.h"

#include <algorithm>
#include <tuple>

namespace stagecraft::traces {

std::vector<StepTime> countedSteps(const std::vector<StepSpan>& steps, const std::vector<Interval>& pauses)
{
    const Pauses paused(pauses);
    std::vector<StepTime> counted;
    for (std::size_t i = stepsLeftOut(steps.size()); i < steps.size(); ++i)
        counted.push_back({steps[i].step, paused.running(steps[i].span)});
    return counted;
}

StepTime middleStep(std::vector<StepTime> counted)
{
    const auto middle = counted.begin() + static_cast<std::ptrdiff_t>((counted.size() - 1) / 2);
    std::nth_element(counted.begin(), middle, counted.end(), [](const StepTime& a, const StepTime& b) {
        return std::tie(a.time, a.step) < std::tie(b.time, b.step);
    });
    return *middle;
}

} // namespace stagecraft::traces
