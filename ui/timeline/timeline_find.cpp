// SPDX-License-Identifier: GPL-3.0-or-later
//
// The search in the timeline: its bar, and the way to a match.
#include "ui/timeline/search_bar.h"
#include "ui/timeline/timeline_search.h"
#include "ui/timeline/timeline_widget.h"

#include <QLocale>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr double kGoalPixels = 12; // that a block is wide at least, to be seen as one

} // namespace

void TimelineWidget::makeSearchBar()
{
    searchBar_->hide();
    connect(searchBar_, &SearchBar::textChanged, this, [this](const QString& text) {
        searchWaits_.reset();
        search_->setText(text);
    });
    connect(searchBar_, &SearchBar::nextWanted, this, &TimelineWidget::findNext);
    connect(searchBar_, &SearchBar::previousWanted, this, &TimelineWidget::findPrevious);
    connect(searchBar_, &SearchBar::closeWanted, this, &TimelineWidget::closeSearch);
    connect(search_, &TimelineSearch::changed, this, [this] {
        showSearchResult();
        if (searchWaits_ && !search_->busy()) find(*std::exchange(searchWaits_, std::nullopt));
    });
    connect(this, &TimelineWidget::selectionChanged, this, &TimelineWidget::showSearchResult);
}

void TimelineWidget::placeSearchBar()
{
    const int bar = searchBar_->sizeHint().height();
    searchBar_->setGeometry(0, height() - bar, width(), bar);
    searchBar_->raise();
}

void TimelineWidget::openSearch()
{
    if (searchBar_->isHidden()) {
        searchBar_->show();
        placeChildren();
        search_->setText(searchBar_->text());
        if (!selection_.none()) scrollTo(selection_); // the bar is not to hide it
    }
    searchBar_->edit();
    showSearchResult();
}

void TimelineWidget::closeSearch()
{
    if (searchBar_->isHidden()) return;
    searchWaits_.reset();
    search_->setText({}); // nothing is kept up to date that nobody sees; the bar keeps the words
    searchBar_->hide();
    placeChildren();
    setFocus(Qt::OtherFocusReason);
}

void TimelineWidget::findNext() { find(Direction::On); }
void TimelineWidget::findPrevious() { find(Direction::Back); }

void TimelineWidget::find(Direction direction)
{
    if (searchBar_->text().trimmed().isEmpty()) {
        openSearch();
        return;
    }
    if (searchBar_->isHidden()) { // the focus stays where it is
        searchBar_->show();
        placeChildren();
        search_->setText(searchBar_->text());
    }
    if (search_->busy()) searchWaits_ = direction;
    else if (const TimelineItem item = search_->next(selection_, direction, scene_.axis().range().first()); !item.none())
        goTo(item);
    showSearchResult();
}

void TimelineWidget::showSearchResult()
{
    if (searchBar_->isHidden()) return;
    const std::size_t count = search_->count();
    searchBar_->setMatches(count > 0);
    if (!search_->problem().isEmpty()) searchBar_->setResult(search_->problem(), SearchBar::Tone::Problem);
    else if (searchBar_->text().trimmed().isEmpty()) searchBar_->setResult({});
    else if (search_->busy()) searchBar_->setResult(tr("searching\u2026"));
    else if (count == 0) searchBar_->setResult(tr("nothing matches"), SearchBar::Tone::Problem);
    else if (const auto place = search_->placeOf(selection_))
        searchBar_->setResult(tr("%L1 of %L2").arg(*place + 1).arg(count));
    else searchBar_->setResult(count == 1 ? tr("1 match") : tr("%L1 matches").arg(count));
}

// In sight, and wide enough to be seen: the view moves and zooms no more than that takes.
void TimelineWidget::goTo(const TimelineItem& item)
{
    const std::pair rank{scene_.role(item.source), scene_.trace(item.source).lane(item.slice.lane).info().rank};
    if (!layout_.rowOf(item.source, item.slice.lane) && folded_.erase(rank)) relayout();
    const auto span = scene_.shownSpan(item);
    if (!span) return;
    TimeAxis& axis = scene_.axis();
    const auto length = static_cast<double>(std::max<traces::TimeNs>(1, span->length()));
    const double longest = length * lanesRect().width() / kGoalPixels;
    if (length > axis.range().length) axis.fit(*span);
    else if (axis.range().length > longest) {
        const double wanted = std::max(longest, TimeAxis::kShortest);
        const auto begin = span->begin - static_cast<traces::TimeNs>((wanted - length) / 2);
        axis.setRange({begin, begin + static_cast<traces::TimeNs>(wanted)});
    }
    selectAndShow(item);
    scrollTo(item); // also one that was selected before
}

} // namespace stagecraft::ui
