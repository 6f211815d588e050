// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/step_index.h"

#include <algorithm>

namespace stagecraft::traces {

StepIndex::StepIndex(const Trace& trace) : lanes_(trace.laneCount())
{
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        if (!isLaneOfWork(lane.info().kind)) continue;
        std::vector<Run>& runs = lanes_[l];
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const Step step = lane.step(i);
            if (runs.empty() || runs.back().step != step)
                runs.push_back({step, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)});
            ++runs.back().end;
            if ((steps_.empty() || steps_.back() != step) && isCompute(lane.action(i).kind())) steps_.push_back(step);
        }
        const auto byStep = [](const Run& a, const Run& b) { return a.step < b.step; };
        if (!std::is_sorted(runs.begin(), runs.end(), byStep)) std::stable_sort(runs.begin(), runs.end(), byStep);
    }
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
}

std::span<const StepIndex::Run> StepIndex::runs(LaneId lane, Step step) const
{
    const std::vector<Run>& runs = lanes_[index(lane)];
    const auto first =
        std::lower_bound(runs.begin(), runs.end(), step, [](const Run& run, Step wanted) { return run.step < wanted; });
    auto last = first;
    while (last != runs.end() && last->step == step) ++last;
    return {first, last};
}

} // namespace stagecraft::traces
