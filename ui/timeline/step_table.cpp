// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/step_table.h"

#include <algorithm>
#include <map>

namespace stagecraft::ui {
namespace {

// First slice after `from` whose step is not that of `from`; the slices of a step follow each other on a lane.
std::size_t endOfStep(const traces::Lane& lane, std::size_t from)
{
    const traces::Step step = lane.step(from);
    std::size_t low = from; // has the step
    std::size_t stride = 1;
    while (low + stride < lane.size() && lane.step(low + stride) == step) {
        low += stride;
        stride *= 2;
    }
    std::size_t high = std::min(low + stride, lane.size());
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (lane.step(middle) == step ? low : high) = middle;
    }
    return high;
}

} // namespace

StepTable::StepTable(const traces::Trace& trace, Growth growth)
{
    std::map<traces::Step, StepPlace> found;
    for (const traces::Lane& lane : trace.lanes()) {
        for (std::size_t i = 0; i < lane.size();) {
            const std::size_t end = endOfStep(lane, i);
            const traces::Interval span{lane.begin(i), lane.end(end - 1)};
            auto [place, fresh] = found.try_emplace(lane.step(i), StepPlace{lane.step(i), span});
            if (!fresh) {
                place->second.span.begin = std::min(place->second.span.begin, span.begin);
                place->second.span.end = std::max(place->second.span.end, span.end);
            }
            place->second.slices += end - i;
            i = end;
        }
    }
    places_.reserve(found.size());
    for (const auto& [step, place] : found) places_.push_back(place);
    const traces::FinishedSteps finished(trace, growth);
    for (StepPlace& place : places_) place.finished = finished.contains(place.step);
}

const StepPlace* StepTable::find(traces::Step step) const
{
    const auto place = std::lower_bound(places_.begin(), places_.end(), step,
                                        [](const StepPlace& p, traces::Step s) { return p.step < s; });
    return place != places_.end() && place->step == step ? &*place : nullptr;
}

} // namespace stagecraft::ui
