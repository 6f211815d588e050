// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/step_analyses.h"

#include <algorithm>

namespace stagecraft::ui {

using traces::Gap;
using traces::Step;
using traces::Trace;

namespace {

constexpr std::size_t kMostSlackSlices = 2'000'000; // a number is kept for each
constexpr std::size_t kMostWanted = 32; // older ones are asked for again, if they are still to be seen

// Whether a rank drains is known only when the step is over; until then its idle end is merely the newest moment.
GapTable tableOf(std::vector<Gap> gaps, const StepPlace& place)
{
    if (!place.finished) std::erase_if(gaps, [](const Gap& gap) { return gap.cause == traces::GapCause::Draining; });
    gaps.shrink_to_fit();
    return GapTable(std::move(gaps));
}

StepInsight insightOf(const Trace& trace, const traces::StepIndex& index, const StepPlace& place)
{
    if (!place.finished) return {};
    StepInsight insight;
    if (traces::Expected<traces::CriticalPath> path = traces::criticalPath(trace, index, place.step); path.ok())
        insight.path = std::move(path).value();
    insight.peaks = traces::memoryPeaks(trace, index, place.step);
    insight.steady = traces::steadyState(trace, index, place.step);
    insight.exchanges = traces::exchangesOf(trace, place.step);
    if (trace.sliceCount() > kMostSlackSlices) return insight;
    if (traces::Expected<traces::StepSlack> slack = traces::slackOf(trace, index, place.step); slack.ok())
        insight.slack = std::move(slack).value();
    return insight;
}

bool sameTrace(const std::weak_ptr<const Trace>& a, const std::weak_ptr<const Trace>& b)
{
    return !a.owner_before(b) && !b.owner_before(a);
}

} // namespace

StepAnalyses::StepAnalyses(QObject* parent) : QObject(parent) {}

StepAnalyses::~StepAnalyses() = default;

void StepAnalyses::keepOnly(const std::vector<TraceSource>& sources)
{
    const auto gone = [&](const auto& each) {
        return std::none_of(sources.begin(), sources.end(),
                            [&](const TraceSource& source) { return sameTrace(each.trace, source.trace); });
    };
    std::erase_if(traces_, gone);
    std::erase_if(wanted_, gone);
    if (!atWork_ || !gone(*atWork_)) return;
    atWork_.reset();
    job_->cancel();
    startNext();
}

StepAnalyses::OfTrace& StepAnalyses::ofTrace(const std::shared_ptr<const Trace>& trace)
{
    const auto known =
        std::find_if(traces_.begin(), traces_.end(), [&](const OfTrace& each) { return sameTrace(each.trace, trace); });
    return known != traces_.end() ? *known : traces_.emplace_back(OfTrace{trace, nullptr, {}});
}

StepAnalyses::Kept& StepAnalyses::kept(const TraceSource& source, Step step)
{
    Kept& kept = ofTrace(source.trace).steps[step];
    kept.askedIn = round_;
    return kept;
}

bool StepAnalyses::isDirect(const TraceSource& source, const StepPlace& place) const
{
    return atOnce_ || (source.growing ? place.slices : source.trace->sliceCount()) <= kDirectSlices;
}

bool StepAnalyses::isCurrent(const TraceSource& source, const StepPlace& kept, const StepPlace& now) const
{
    const std::size_t part = isDirect(source, now) ? 64 : 8; // a copy of what has grown is not made for every little thing
    const std::size_t tolerated = now.finished ? 0 : kept.slices / part;
    return kept.finished == now.finished && now.slices >= kept.slices && now.slices - kept.slices <= tolerated;
}

const GapTable& StepAnalyses::gaps(const TraceSource& source, const StepTable& steps, Step step)
{
    Kept& known = kept(source, step);
    const StepPlace* place = steps.find(step);
    if (!place || isCurrent(source, known.gapsAt, *place)) return known.gaps;
    if (isDirect(source, *place)) {
        known.gapsAt = *place;
        known.gaps = tableOf(traces::gapsOf(*source.trace, step), *place);
    } else want(source, *place);
    return known.gaps;
}

const std::optional<traces::StepFigures>& StepAnalyses::figures(const TraceSource& source, const StepTable& steps, Step step)
{
    Kept& known = kept(source, step);
    const StepPlace* place = steps.find(step);
    if (!place || isCurrent(source, known.figuresAt, *place)) return known.figures;
    if (isDirect(source, *place)) {
        known.figuresAt = *place;
        traces::Expected<traces::StepFigures> figures = traces::stepFigures(*source.trace, step);
        known.figures.reset();
        if (figures.ok()) known.figures = std::move(figures).value();
    } else want(source, *place);
    return known.figures;
}

const StepInsight& StepAnalyses::insight(const TraceSource& source, const StepTable& steps, Step step)
{
    Kept& known = kept(source, step);
    const StepPlace* place = steps.find(step);
    if (!place || isCurrent(source, known.insightAt, *place)) return known.insight;
    if (isDirect(source, *place)) {
        known.insightAt = *place;
        known.insight = insightOf(*source.trace, traces::StepIndex(*source.trace), *place);
    } else want(source, *place);
    return known.insight;
}

bool StepAnalyses::calculating(const TraceSource& source, const StepTable& steps, Step step) const
{
    const StepPlace* place = steps.find(step);
    if (!place || isDirect(source, *place)) return false;
    const auto known = std::find_if(traces_.begin(), traces_.end(),
                                    [&](const OfTrace& each) { return sameTrace(each.trace, source.trace); });
    if (known == traces_.end()) return true;
    const auto kept = known->steps.find(step);
    return kept == known->steps.end() || !isCurrent(source, kept->second.figuresAt, *place);
}

void StepAnalyses::want(const TraceSource& source, const StepPlace& place)
{
    const auto isIt = [&](const Wanted& each) {
        return each.place.step == place.step && sameTrace(each.trace, source.trace);
    };
    if (atWork_ && isIt(*atWork_) && atWork_->place.finished == place.finished) return;
    std::erase_if(wanted_, isIt); // the newest is to be seen now
    wanted_.push_back({source.trace, source.growing, place});
    if (wanted_.size() > kMostWanted) wanted_.erase(wanted_.begin());
    if (!atWork_) startNext();
}

void StepAnalyses::startNext()
{
    while (!wanted_.empty() && !atWork_) {
        Wanted next = std::move(wanted_.back());
        wanted_.pop_back();
        std::shared_ptr<const Trace> trace = next.trace.lock();
        if (!trace) continue;
        std::shared_ptr<const traces::StepIndex> index;
        // A run goes on adding to its trace: the job gets a copy of what there is.
        if (next.growing) trace = std::make_shared<const Trace>(*trace);
        else index = ofTrace(trace).index;
        if (!job_) job_ = std::make_unique<BackgroundJob<Result>>();
        atWork_ = next;
        job_->start(
            [trace, index, next](JobControl& control) {
                Result result{next.trace, index, next.place, {}, {}, {}};
                if (!result.index) result.index = std::make_shared<const traces::StepIndex>(*trace);
                auto analysis = traces::analyseStep(*trace, *result.index, next.place.step, control.stopToken());
                if (!analysis) return result;
                result.gaps = tableOf(std::move(analysis->gaps), next.place);
                result.figures = std::move(analysis->figures);
                result.insight = insightOf(*trace, *result.index, next.place);
                if (next.growing) result.index.reset();
                return result;
            },
            [this](Result result) { take(std::move(result)); });
    }
}

void StepAnalyses::take(Result result)
{
    atWork_.reset();
    ++round_;
    if (const std::shared_ptr<const Trace> trace = result.trace.lock(); trace && result.gaps) {
        OfTrace& known = ofTrace(trace);
        known.index = result.index;
        Kept& step = known.steps[result.place.step];
        step.gapsAt = step.figuresAt = step.insightAt = result.place;
        step.gaps = std::move(*result.gaps);
        step.figures = std::move(result.figures);
        step.insight = std::move(result.insight);
        step.askedIn = round_;
    }
    dropOldGaps();
    startNext();
    emit arrived();
}

// Those of the last round may be on the screen.
void StepAnalyses::dropOldGaps()
{
    std::size_t total = 0;
    std::vector<Kept*> old;
    for (OfTrace& trace : traces_)
        for (auto& [step, kept] : trace.steps) {
            total += kept.gaps.all().size();
            if (kept.askedIn + 1 < round_ && !kept.gaps.all().empty()) old.push_back(&kept);
        }
    std::sort(old.begin(), old.end(), [](const Kept* a, const Kept* b) { return a->askedIn < b->askedIn; });
    for (Kept* kept : old) {
        if (total <= kMostGaps) return;
        total -= kept->gaps.all().size();
        kept->gaps = {};
        kept->gapsAt = {};
    }
}

} // namespace stagecraft::ui
