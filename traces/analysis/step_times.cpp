// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/step_times.h"

#include "traces/analysis/pauses.h"

#include <algorithm>
#include <tuple>

namespace stagecraft::traces {

std::vector<StepTime> countedSteps(const std::vector<StepSpan>& steps, const std::vector<Interval>& pauses)
{
    constexpr std::size_t kEnoughToLeaveOneOut = 3;
    const Pauses paused(pauses);
    std::vector<StepTime> counted;
    for (std::size_t i = steps.size() >= kEnoughToLeaveOneOut ? 1 : 0; i < steps.size(); ++i)
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
