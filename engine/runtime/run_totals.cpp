// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_totals.h"

#include "traces/analysis/median.h"
#include "traces/analysis/step_times.h"

#include <algorithm>

namespace stagecraft::runtime {

using namespace traces;

namespace {

std::optional<std::size_t> placeOf(ActionKind kind)
{
    switch (kind) {
    case ActionKind::Forward: return 0;
    case ActionKind::Backward: return 1;
    case ActionKind::Optimizer: return 2;
    case ActionKind::InputGrad: return 3;
    case ActionKind::WeightGrad: return 4;
    case ActionKind::Overlap: return 5;
    default: return std::nullopt;
    }
}

} // namespace

RunTotals::RunTotals(int stages) : transferSeries_(static_cast<std::size_t>(stages) * kKinds), medians_(transferSeries_ + 1)
{
}

void RunTotals::take(const Record& record)
{
    if (const auto* lane = std::get_if<LaneRecord>(&record)) lanes_.push_back(lane->lane);
    if (const auto* pause = std::get_if<PauseRecord>(&record)) pauses_.push_back(pause->pause);
    if (const auto* step = std::get_if<StepRecord>(&record)) endStep(step->step);
    if (const auto* slice = std::get_if<SliceRecord>(&record)) takeSlice(*slice);
}

// Of two that ran together each took longer than alone: what counts is the time of both.
void RunTotals::takeSlice(const SliceRecord& record)
{
    const LaneInfo& lane = lanes_[index(record.lane)];
    const Slice& slice = record.slice;
    if (lane.kind == LaneKind::Transfer) return note(slice.step, transferSeries_, slice.duration());
    if (lane.kind == LaneKind::Collective) openCollectives_[slice.step] += slice.duration();
    if (lane.kind != LaneKind::Compute) return;
    if (lane.depth > 0) {
        beside_[lane.rank] = slice;
        return;
    }
    if (const auto pair = beside_.extract(lane.rank)) {
        const Slice& forward = pair.mapped();
        const TimeNs both = std::max(slice.end, forward.end) - std::min(slice.begin, forward.begin);
        return note(slice.step, index(forward.action.stage()) * kKinds + *placeOf(ActionKind::Overlap), both);
    }
    if (const std::optional<std::size_t> series = seriesOf(slice.action)) note(slice.step, *series, slice.duration());
}

void RunTotals::note(Step step, std::size_t series, TimeNs duration)
{
    open_.try_emplace(step, medians_.size()).first->second[series].push_back(duration);
}

std::optional<std::size_t> RunTotals::seriesOf(const Action& action)
{
    const std::optional<std::size_t> place = placeOf(action.kind());
    if (!place) return std::nullopt;
    return index(action.stage()) * kKinds + *place;
}

void RunTotals::endStep(const StepSpan& step)
{
    steps_.push_back(step);
    if (const auto summed = openCollectives_.extract(step.step)) collectives_.push_back(summed.mapped());
    const auto ended = open_.find(step.step);
    if (ended == open_.end()) return;
    for (std::size_t series = 0; series < medians_.size(); ++series) {
        if (ended->second[series].empty()) continue;
        const TimeNs median = medianOf(std::move(ended->second[series]));
        if (steps_.size() == 1) medians_[series].first = median;
        else medians_[series].others.push_back(median);
    }
    open_.erase(ended);
}

TimeNs RunTotals::median(Stage stage, ActionKind kind) const
{
    const std::optional<std::size_t> place = placeOf(kind);
    return place ? medianOfSeries(index(stage) * kKinds + *place) : 0;
}

TimeNs RunTotals::medianCollectives() const
{
    const auto first = collectives_.begin() + static_cast<std::ptrdiff_t>(stepsLeftOut(collectives_.size()));
    return collectives_.empty() ? 0 : medianOf(std::vector<TimeNs>(first, collectives_.end()));
}

TimeNs RunTotals::medianTransfer() const { return medianOfSeries(transferSeries_); }

TimeNs RunTotals::medianOfSeries(std::size_t series) const
{
    std::vector<TimeNs> values = medians_[series].others;
    if (stepsLeftOut(steps_.size()) == 0 && medians_[series].first) values.push_back(*medians_[series].first);
    return values.empty() ? 0 : medianOf(std::move(values));
}

} // namespace stagecraft::runtime
