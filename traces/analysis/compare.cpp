// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/compare.h"

#include "traces/analysis/figures.h"
#include "traces/analysis/median.h"
#include "traces/analysis/pauses.h"
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace stagecraft::traces {
namespace {

struct Found {
    Action action{};
    TimeNs begin = 0; // since the step's first start, without pauses
    TimeNs duration = 0;
    SliceRef slice{};
};

struct StepActions {
    TimeNs makespan = 0;
    std::vector<Found> actions; // by action, those alike by begin
};

// A trace with what its steps are looked up by.
struct Indexed {
    explicit Indexed(const Trace& t) : trace(t), index(t), pauses(t.pauses()) {}
    const Trace& trace;
    StepIndex index;
    Pauses pauses;
};

Expected<StepActions> actionsOf(const Indexed& from, Step step, std::string_view which)
{
    const Trace& trace = from.trace;
    const Pauses& pauses = from.pauses;
    const StepView view = viewOf(trace, from.index, step);
    if (!view.computes)
        return Error{"the " + std::string(which) + " trace has no computing action in step " + std::to_string(step.value)};
    StepActions found{.makespan = pauses.running(view.span), .actions = {}};
    for (const RankView& rank : view.ranks)
        for (const SliceRef ref : rank.slices) {
            const Slice slice = trace.slice(ref);
            if (slice.action.kind() == ActionKind::None) continue;
            // what was posted before the step's first start has a negative begin
            const TimeNs begin = slice.begin >= view.span.begin ? pauses.running({view.span.begin, slice.begin})
                                                                : -pauses.running({slice.begin, view.span.begin});
            found.actions.push_back({slice.action, begin, pauses.running({slice.begin, slice.end}), ref});
        }
    std::stable_sort(found.actions.begin(), found.actions.end(), [](const Found& a, const Found& b) {
        return std::tie(a.action, a.begin) < std::tie(b.action, b.begin);
    });
    return found;
}

double relativeError(TimeNs predicted, TimeNs actual)
{
    return static_cast<double>(predicted - actual) / static_cast<double>(actual);
}

// What the matched actions of one kind are gathered in.
struct KindTimes {
    std::vector<TimeNs> predicted;
    std::vector<TimeNs> actual;
    std::vector<double> errors;
};

Expected<StepComparison> compareIndexed(const Indexed& predicted, Step predictedStep, const Indexed& actual,
                                        Step actualStep)
{
    const Expected<StepActions> foretold = actionsOf(predicted, predictedStep, "predicted");
    if (!foretold.ok()) return foretold.error();
    const Expected<StepActions> happened = actionsOf(actual, actualStep, "actual");
    if (!happened.ok()) return happened.error();

    StepComparison result;
    result.predicted = predictedStep;
    result.actual = actualStep;
    result.predictedTime = foretold.value().makespan;
    result.actualTime = happened.value().makespan;
    if (result.actualTime > 0) result.stepTimeError = relativeError(result.predictedTime, result.actualTime);

    std::map<ActionKind, KindTimes> kinds;
    std::vector<TimeNs> shifts;
    auto p = foretold.value().actions.begin();
    auto a = happened.value().actions.begin();
    while (p != foretold.value().actions.end() && a != happened.value().actions.end()) {
        if (p->action < a->action) {
            ++p;
            ++result.onlyPredicted;
        } else if (a->action < p->action) {
            ++a;
            ++result.onlyActual;
        } else {
            KindTimes& times = kinds[p->action.kind()];
            times.predicted.push_back(p->duration);
            times.actual.push_back(a->duration);
            if (a->duration > 0) times.errors.push_back(relativeError(p->duration, a->duration));
            shifts.push_back(p->begin > a->begin ? p->begin - a->begin : a->begin - p->begin);
            if (shifts.back() > result.maxShift || shifts.size() == 1) {
                result.maxShift = shifts.back();
                result.furthest = a->slice;
            }
            ++p;
            ++a;
        }
    }
    result.onlyPredicted += static_cast<std::size_t>(foretold.value().actions.end() - p);
    result.onlyActual += static_cast<std::size_t>(happened.value().actions.end() - a);
    result.matched = shifts.size();
    if (shifts.empty())
        return Error{"step " + std::to_string(predictedStep.value) + " of the predicted trace and step " +
                     std::to_string(actualStep.value) + " of the actual one have no action in common"};
    result.medianShift = medianOf(std::move(shifts));
    for (auto& [kind, times] : kinds) {
        KindComparison comparison{.kind = kind,
                                  .matched = times.actual.size(),
                                  .predictedMedian = medianOf(times.predicted),
                                  .actualMedian = medianOf(times.actual)};
        if (!times.errors.empty()) {
            comparison.medianError = medianOf(times.errors);
            comparison.meanError =
                std::accumulate(times.errors.begin(), times.errors.end(), 0.0) / static_cast<double>(times.errors.size());
        }
        result.kinds.push_back(comparison);
    }
    return result;
}

} // namespace

Expected<StepComparison> compareSteps(const Trace& predicted, Step predictedStep, const Trace& actual, Step actualStep)
{
    return compareIndexed(Indexed(predicted), predictedStep, Indexed(actual), actualStep);
}

Expected<TraceComparison> compareTraces(const Trace& predicted, const Trace& actual)
{
    const Indexed before(predicted);
    const Indexed after(actual);
    const std::vector<Step>& foretold = before.index.steps();
    const std::vector<Step>& happened = after.index.steps();
    if (foretold.empty()) return Error{"the predicted trace has no step with a computing action"};
    if (happened.empty()) return Error{"the actual trace has no step with a computing action"};
    TraceComparison all;
    for (const Step step : happened) {
        const Step with = foretold.size() == 1 ? foretold.front() : step;
        if (!std::ranges::binary_search(foretold, with)) {
            all.onlyActual.push_back(step);
            continue;
        }
        const Expected<StepComparison> compared = compareIndexed(before, with, after, step);
        if (!compared.ok()) return compared.error();
        all.steps.push_back(compared.value());
    }
    if (all.steps.empty())
        return Error{"the traces have no step in common: the predicted one has those from " + std::to_string(foretold.front().value) + " to " +
                     std::to_string(foretold.back().value) + ", the actual one from " + std::to_string(happened.front().value) + " to " +
                     std::to_string(happened.back().value)};
    if (foretold.size() > 1) std::ranges::set_difference(foretold, happened, std::back_inserter(all.onlyPredicted));
    return all;
}

} // namespace stagecraft::traces
