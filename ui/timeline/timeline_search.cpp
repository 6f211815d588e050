// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_search.h"

#include "ui/bridge/text.h"
#include "ui/timeline/item_identity.h"

#include <algorithm>

namespace stagecraft::ui {

using traces::SliceRef;
using traces::TimeNs;
using traces::Trace;

namespace {

// The slice that an item is, or that bounds it.
SliceRef anchorOf(const TimelineItem& item) { return item.kind == TimelineItem::Kind::Gap ? item.gap.before : item.slice; }

} // namespace

TimelineSearch::TimelineSearch(const TimelineScene& scene, QObject* parent) : QObject(parent), scene_(scene)
{
    connect(&scene_, &TimelineScene::sourcesChanged, this, &TimelineSearch::refreshSources);
    connect(&scene_, &TimelineScene::dataChanged, this, [this] {
        if (!query_) return;
        if (!searchesAllRows()) refreshSources();     // the first blocks of a run have made its rows
        else if (!busy() && missing() > 0) refresh(); // else what was added is looked at when the job is done
    });
}

TimelineSearch::~TimelineSearch() = default;

void TimelineSearch::setText(const QString& text)
{
    if (text == text_) return;
    text_ = text;
    problem_.clear();
    query_.reset();
    traces::Expected<traces::SliceQuery> query = traces::SliceQuery::parse(fromQt(text));
    if (!query.ok()) problem_ = toQt(query.error().message);
    else if (!query.value().empty()) query_ = std::move(query).value();
    found_.clear();
    refreshSources();
}

void TimelineSearch::refreshSources()
{
    std::vector<Found> kept = std::exchange(found_, {});
    for (int source = 0; query_ && source < scene_.sourceCount(); ++source) {
        if (scene_.drawnAsOutline(source)) continue; // has no row to go to
        const std::shared_ptr<const Trace>& trace = scene_.sources()[static_cast<std::size_t>(source)].trace;
        const auto known = std::find_if(kept.begin(), kept.end(), [&](const Found& found) { return found.trace == trace; });
        found_.push_back(known != kept.end() ? std::move(*known) : Found{trace, traces::SliceMatches(*query_)});
    }
    if (job_) job_->cancel();
    refresh();
}

bool TimelineSearch::searchesAllRows() const
{
    std::size_t at = 0;
    for (int source = 0; source < scene_.sourceCount(); ++source) {
        if (scene_.drawnAsOutline(source)) continue;
        if (at >= found_.size() || found_[at].trace != scene_.sources()[static_cast<std::size_t>(source)].trace)
            return false;
        ++at;
    }
    return at == found_.size();
}

std::size_t TimelineSearch::missing() const
{
    std::size_t missing = 0;
    for (const Found& found : found_) missing += found.trace->sliceCount() - found.matches.seen();
    return missing;
}

void TimelineSearch::refresh()
{
    if (missing() <= kDirectSlices) {
        for (Found& found : found_) found.matches.extend(*found.trace);
    } else {
        if (!job_) job_ = std::make_unique<BackgroundJob<std::vector<Found>>>();
        std::vector<Found> work = found_;
        for (Found& found : work) // a run goes on adding to its trace: the job gets a copy of what there is
            if (const int source = sourceOf(found); scene_.sources()[static_cast<std::size_t>(source)].growing)
                found.trace = std::make_shared<const Trace>(found.trace->slicesOnly());
        job_->start(
            [work = std::move(work)](JobControl& control) mutable {
                for (Found& found : work) found.matches.extend(*found.trace, control.stopToken());
                return std::move(work);
            },
            [this](std::vector<Found> found) { take(std::move(found)); });
    }
    emit changed();
}

void TimelineSearch::take(std::vector<Found> found)
{
    for (std::size_t i = 0; i < found_.size(); ++i)
        found_[i].matches = std::move(found[i].matches); // other sources start another job
    refresh();
}

std::size_t TimelineSearch::count() const
{
    std::size_t count = 0;
    for (const Found& found : found_) count += found.matches.count();
    return count;
}

int TimelineSearch::sourceOf(const Found& found) const
{
    const auto& sources = scene_.sources();
    const auto at =
        std::find_if(sources.begin(), sources.end(), [&](const TraceSource& source) { return source.trace == found.trace; });
    return static_cast<int>(at - sources.begin());
}

TimelineItem TimelineSearch::itemOf(const Found& found, SliceRef slice, int segment) const
{
    TimelineItem item{.kind = TimelineItem::Kind::Slice, .source = sourceOf(found), .slice = slice};
    const auto held = segmentHolding(scene_, item.source, found.trace->slice(slice).begin, segment);
    if (!held) return {};
    item.segment = *held;
    return item;
}

std::optional<std::size_t> TimelineSearch::placeOf(const TimelineItem& item) const
{
    if (item.kind != TimelineItem::Kind::Slice) return std::nullopt;
    std::size_t before = 0;
    for (const Found& found : found_) {
        if (sourceOf(found) == item.source)
            return found.matches.contains(item.slice)
                       ? std::optional(before + found.matches.countBefore(*found.trace, item.slice))
                       : std::nullopt;
        before += found.matches.count();
    }
    return std::nullopt;
}

TimelineItem TimelineSearch::next(const TimelineItem& item, Direction direction, TimeNs shown) const
{
    const auto sources = static_cast<int>(found_.size());
    if (sources == 0 || count() == 0) return {};
    const bool on = direction == Direction::On;
    const auto step = [&](const Found& found, SliceRef from) {
        return on ? found.matches.after(*found.trace, from) : found.matches.before(*found.trace, from);
    };
    const auto edge = [&](const Found& found) {
        const traces::Interval extent = found.trace->extent();
        return on ? found.matches.from(*found.trace, extent.begin) : found.matches.until(*found.trace, extent.end + 1);
    };

    int at = 0;
    std::optional<SliceRef> match;
    const auto own =
        std::find_if(found_.begin(), found_.end(), [&](const Found& found) { return sourceOf(found) == item.source; });
    if (!item.none() && own != found_.end() && scene_.shownSpan(item)) {
        at = static_cast<int>(own - found_.begin());
        const SliceRef anchor = anchorOf(item);
        // On from a bubble leads to the block that ends it, where that matches.
        const bool bounds = on && item.kind == TimelineItem::Kind::Gap && item.gap.cause != traces::GapCause::Draining;
        match = bounds && own->matches.contains(anchor) ? anchor : step(*own, anchor);
    } else if (const std::vector<Segment>& segments = scene_.segments(sourceOf(found_.front())); !segments.empty()) {
        const Found& first = found_.front();
        const TimeNs time = shown - segments.front().shift;
        match = on ? first.matches.from(*first.trace, time) : first.matches.until(*first.trace, time);
    }
    // Through the sources, and once round: to where it began. A match that no segment shows is passed over.
    for (int passed = 0; passed <= sources;) {
        const Found& found = found_[static_cast<std::size_t>(at)];
        if (match) {
            const TimelineItem hit = itemOf(found, *match, item.none() ? 0 : item.segment);
            if (!hit.none()) return hit;
            match = step(found, *match);
            continue;
        }
        ++passed;
        at = (at + (on ? 1 : sources - 1)) % sources;
        match = edge(found_[static_cast<std::size_t>(at)]);
    }
    return {};
}

} // namespace stagecraft::ui
