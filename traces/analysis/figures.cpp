// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/figures.h"

#include "traces/analysis/activation_count.h"
#include "traces/analysis/gap_causes.h"
#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/pauses.h"
#include "traces/analysis/step_view.h"

#include <algorithm>
#include <limits>
#include <string>

namespace stagecraft::traces {
namespace {

Bytes peakMemory(const Trace& trace, Rank rank, Interval span)
{
    Bytes peak = 0;
    forEachMemoryMoment(trace, rank, span, [&](TimeNs, Bytes sum) { peak = std::max(peak, sum); });
    return peak;
}

void addGaps(std::vector<Gap>& gaps, const Gap& gap, const Pauses& pauses)
{
    pauses.forEachRunning(gap.span, [&](Interval piece) {
        gaps.push_back(gap);
        gaps.back().span = piece;
    });
}

// Keeps the gaps as well where they are wanted.
RankFigures figuresOf(const Trace& trace, const StepView& view, const RankView& rank, const Pauses& pauses,
                      std::vector<Gap>* gaps = nullptr)
{
    RankFigures figures;
    figures.rank = rank.rank;
    figures.firstStart = rank.span.begin;
    figures.lastEnd = rank.span.end;
    figures.busy = busyTime(trace, rank, pauses);
    forEachGap(trace, view, rank, [&](const Gap& gap) {
        const TimeNs length = pauses.running(gap.span);
        figures.idle += length;
        figures.idleByCause[static_cast<std::size_t>(gap.cause)] += length;
        if (gaps) addGaps(*gaps, gap, pauses);
    });
    figures.peakActivations = peakActivations(trace, rank);
    figures.peakMemory = peakMemory(trace, rank.rank, view.span);
    return figures;
}

// Of a step from those of its ranks.
StepFigures figuresOf(const StepView& view, std::vector<RankFigures> ranks, Step step, const Pauses& pauses)
{
    StepFigures figures;
    figures.step = step;
    figures.ranks = std::move(ranks);
    figures.span = view.span;
    figures.makespan = pauses.running(view.span);
    TimeNs lastStart = std::numeric_limits<TimeNs>::min();
    TimeNs firstDone = std::numeric_limits<TimeNs>::max();
    TimeNs busy = 0;
    for (const RankFigures& rank : figures.ranks) busy += rank.busy;
    for (const RankView& rank : view.ranks) {
        figures.maxSpan = std::max(figures.maxSpan, pauses.running(rank.span));
        lastStart = std::max(lastStart, rank.span.begin);
        firstDone = std::min(firstDone, rank.span.end);
    }
    figures.steady = {lastStart, std::max(lastStart, firstDone)};
    figures.work = static_cast<double>(busy) / static_cast<double>(view.ranks.size());
    const auto bubbleWithin = [&](TimeNs span) { return span > 0 ? 1.0 - figures.work / static_cast<double>(span) : 0.0; };
    figures.bubbleMakespan = bubbleWithin(figures.makespan);
    figures.bubbleSpan = bubbleWithin(figures.maxSpan);
    figures.bubbleOverIdeal = busy > 0 ? static_cast<double>(figures.makespan) / figures.work - 1.0 : 0.0;
    return figures;
}

StepFigures figuresOf(const Trace& trace, const StepView& view, Step step, const Pauses& pauses)
{
    std::vector<RankFigures> ranks;
    for (const RankView& rank : view.ranks) ranks.push_back(figuresOf(trace, view, rank, pauses));
    return figuresOf(view, std::move(ranks), step, pauses);
}

} // namespace

std::string_view gapCauseText(GapCause cause)
{
    switch (cause) {
    case GapCause::Filling: return "filling";
    case GapCause::Draining: return "draining";
    case GapCause::Transfer: return "transfer";
    case GapCause::WaitForStage: return "waiting for stage";
    case GapCause::Memory: return "waiting for memory";
    case GapCause::HostOverhead: return "host overhead";
    case GapCause::Unexplained: return "unexplained";
    }
    return "";
}

std::string_view gapCauseKey(GapCause cause)
{
    switch (cause) {
    case GapCause::Filling: return "filling";
    case GapCause::Draining: return "draining";
    case GapCause::Transfer: return "transfer";
    case GapCause::WaitForStage: return "waiting";
    case GapCause::Memory: return "memory";
    case GapCause::HostOverhead: return "host";
    case GapCause::Unexplained: return "unexplained";
    }
    return "";
}

std::vector<Step> stepsOf(const Trace& trace) { return StepIndex(trace).steps(); }

Expected<StepFigures> stepFigures(const Trace& trace, Step step)
{
    const StepView view = viewOf(trace, StepIndex(trace), step);
    if (!view.computes) return Error{"step " + std::to_string(step.value) + " of the trace has no computing action"};
    return figuresOf(trace, view, step, Pauses(trace.pauses()));
}

std::vector<StepFigures> allStepFigures(const Trace& trace)
{
    const StepIndex index(trace);
    const Pauses pauses(trace.pauses());
    std::vector<StepFigures> all;
    all.reserve(index.steps().size());
    for (const Step step : index.steps()) all.push_back(figuresOf(trace, viewOf(trace, index, step), step, pauses));
    return all;
}

std::vector<Gap> gapsOf(const Trace& trace, Step step)
{
    std::vector<Gap> gaps;
    const StepView view = viewOf(trace, StepIndex(trace), step);
    if (!view.computes) return gaps;
    const Pauses pauses(trace.pauses());
    for (const RankView& rank : view.ranks)
        forEachGap(trace, view, rank, [&](const Gap& gap) { addGaps(gaps, gap, pauses); });
    return gaps;
}

std::optional<StepAnalysis> analyseStep(const Trace& trace, const StepIndex& index, Step step, const std::stop_token& stop)
{
    StepAnalysis analysis;
    const StepView view = viewOf(trace, index, step);
    if (!view.computes) return analysis;
    const Pauses pauses(trace.pauses());
    std::vector<RankFigures> ranks;
    for (const RankView& rank : view.ranks) {
        if (stop.stop_requested()) return std::nullopt;
        ranks.push_back(figuresOf(trace, view, rank, pauses, &analysis.gaps));
    }
    analysis.figures = figuresOf(view, std::move(ranks), step, pauses);
    return analysis;
}

} // namespace stagecraft::traces
