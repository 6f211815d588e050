// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_scene.h"

#include <algorithm>
#include <limits>

namespace stagecraft::ui {

using traces::Interval;
using traces::TimeNs;

namespace {

constexpr double kOtherLength = 1.6; // times longer or shorter: not the same thing any more

// One showing of all of a trace, from 0. Ends far away, so that a growing trace needs no new segment.
constexpr TimeNs kFarAway = std::numeric_limits<TimeNs>::max() / 4;

Segment wholeFrom(TimeNs begin) { return {{begin, begin + kFarAway}, -begin}; }

std::vector<Segment> alignedSegments(const StepTable& own, const StepTable& reference, TimeNs referenceShift)
{
    std::vector<Segment> segments;
    const bool repeat = own.all().size() == 1;
    const StepPlace* lastOwn = nullptr;
    TimeNs lastShift = 0;
    for (const StepPlace& place : reference.all()) {
        const StepPlace* mine = repeat ? &own.all().front() : own.find(place.step);
        if (!mine) continue;
        lastOwn = mine;
        lastShift = place.span.begin + referenceShift - mine->span.begin;
        segments.push_back({mine->span, lastShift});
    }
    if (!lastOwn) return {wholeFrom(own.all().front().span.begin)};
    // Steps that the reference has not reached follow as in their own trace.
    for (const StepPlace& place : own.all())
        if (!repeat && place.step > lastOwn->step) segments.push_back({place.span, lastShift});
    // A step that takes longer here than in the reference ends where the next begins: two lay over each other otherwise.
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
        const TimeNs next = segments[i + 1].shown().begin - segments[i].shift;
        segments[i].span.end = std::clamp(next, segments[i].span.begin, segments[i].span.end);
    }
    return segments;
}

} // namespace

SourceRole roleOf(const TraceSource& source)
{
    const bool simulated = source.trace->info.label == traces::TraceLabel::Simulated;
    return source.role.value_or(simulated ? SourceRole::Simulation : SourceRole::Other);
}

QString sourceLabel(const TraceSource& source)
{
    if (!source.label.isEmpty()) return source.label;
    const auto label = traces::labelText(source.trace->info.label);
    QString text = QString::fromUtf8(label.data(), static_cast<qsizetype>(label.size()));
    if (!source.trace->info.title.empty()) text += QStringLiteral(" \u00b7 ") + QString::fromStdString(source.trace->info.title);
    return text;
}

TimelineScene::TimelineScene(QObject* parent) : QObject(parent)
{
    connect(&analyses_, &StepAnalyses::arrived, this, &TimelineScene::analysed);
}

void TimelineScene::setSources(std::vector<TraceSource> sources, Arrangement arrangement)
{
    arrangement_ = arrangement;
    std::erase_if(sources, [](const TraceSource& source) { return !source.trace; });
    sources_ = std::move(sources);
    states_.clear();
    states_.resize(sources_.size());
    analyses_.keepOnly(sources_);
    arrange();
    emit sourcesChanged(); // before the axis moves: its listeners look into the sources
    if (empty()) return;
    const double before = static_cast<double>(axis_.limits().length());
    axis_.setLimits(extent());
    // A plan changed a little keeps the view that one had chosen; something else is shown whole.
    const double change = static_cast<double>(axis_.limits().length()) / before;
    if (change > kOtherLength || change < 1 / kOtherLength) axis_.showAll();
}

void TimelineScene::setArrangement(Arrangement arrangement)
{
    if (arrangement == arrangement_) return;
    arrangement_ = arrangement;
    emit sourcesChanged();
}

void TimelineScene::setGrowing(int source, bool growing)
{
    sources_[static_cast<std::size_t>(source)].growing = growing;
    dataArrived();
}

void TimelineScene::dataArrived()
{
    arrange();
    if (!empty()) axis_.setLimits(extent());
    emit dataChanged();
}

void TimelineScene::arrange()
{
    reference_ = -1;
    for (int i = 0; i < sourceCount(); ++i) {
        State& state = states_[static_cast<std::size_t>(i)];
        state.steps = StepTable(trace(i), sources_[static_cast<std::size_t>(i)].growing ? Growth::Growing : Growth::Closed);
        state.segments.clear();
        if (state.steps.empty()) continue;
        if (reference_ < 0 || role(i) == SourceRole::Other) reference_ = i;
    }
    if (reference_ < 0) {
        if (!sources_.empty()) reference_ = 0;
        return;
    }
    State& base = states_[static_cast<std::size_t>(reference_)];
    const TimeNs begin = trace(reference_).extent().begin;
    base.segments = {wholeFrom(begin)};
    for (int i = 0; i < sourceCount(); ++i) {
        State& state = states_[static_cast<std::size_t>(i)];
        if (i != reference_ && !state.steps.empty()) state.segments = alignedSegments(state.steps, base.steps, -begin);
    }
}

bool TimelineScene::drawnAsOutline(int source) const
{
    return arrangement_ == Arrangement::Overlaid && source != reference_ && sourceCount() > 1;
}

bool TimelineScene::empty() const
{
    return std::all_of(states_.begin(), states_.end(), [](const State& state) { return state.steps.empty(); });
}

bool TimelineScene::growing() const
{
    return std::any_of(sources_.begin(), sources_.end(), [](const TraceSource& source) { return source.growing; });
}

Interval TimelineScene::extent() const
{
    Interval all;
    bool any = false;
    for (int i = 0; i < sourceCount(); ++i) {
        const Interval own = trace(i).extent();
        for (const Segment& segment : segments(i)) {
            const Interval shown{std::max(own.begin, segment.span.begin) + segment.shift,
                                 std::min(own.end, segment.span.end) + segment.shift};
            all.begin = any ? std::min(all.begin, shown.begin) : shown.begin;
            all.end = any ? std::max(all.end, shown.end) : shown.end;
            any = true;
        }
    }
    // what ranks wait for is told behind their last block
    const bool stuck = std::any_of(sources_.begin(), sources_.end(), [](const TraceSource& source) { return !source.stuck.empty(); });
    if (stuck) all.end += all.length() * 2 / 5;
    return all;
}

TimeNs TimelineScene::newest() const
{
    for (int i = 0; i < sourceCount(); ++i)
        if (sources_[static_cast<std::size_t>(i)].growing && !segments(i).empty())
            return trace(i).extent().end + segments(i).back().shift;
    return extent().end;
}

std::optional<Interval> TimelineScene::shownSpan(const TimelineItem& item) const
{
    if (item.none() || item.source >= sourceCount()) return std::nullopt;
    const std::vector<Segment>& all = segments(item.source);
    if (static_cast<std::size_t>(item.segment) >= all.size()) return std::nullopt;
    Interval span = item.gap.span;
    if (item.kind == TimelineItem::Kind::Slice) {
        const traces::Trace& own = trace(item.source);
        if (index(item.slice.lane) >= own.laneCount() || item.slice.index >= own.lane(item.slice.lane).size()) return std::nullopt;
        const traces::Slice slice = own.slice(item.slice);
        span = {slice.begin, slice.end};
    }
    const TimeNs shift = all[static_cast<std::size_t>(item.segment)].shift;
    return Interval{span.begin + shift, span.end + shift};
}

const GapTable& TimelineScene::gaps(int source, traces::Step step) const
{
    return analyses_.gaps(sources_[static_cast<std::size_t>(source)], steps(source), step);
}

const std::optional<traces::StepFigures>& TimelineScene::figures(int source, traces::Step step) const
{
    return analyses_.figures(sources_[static_cast<std::size_t>(source)], steps(source), step);
}

const StepInsight& TimelineScene::insight(int source, traces::Step step) const
{
    return analyses_.insight(sources_[static_cast<std::size_t>(source)], steps(source), step);
}

bool TimelineScene::calculating(int source, traces::Step step) const
{
    return analyses_.calculating(sources_[static_cast<std::size_t>(source)], steps(source), step);
}

} // namespace stagecraft::ui
