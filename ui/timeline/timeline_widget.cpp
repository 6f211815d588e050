// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_widget.h"

#include "ui/timeline/hit_test.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/item_details.h"
#include "ui/timeline/search_bar.h"
#include "ui/timeline/time_ticks.h"
#include "ui/timeline/timeline_search.h"

#include <QEvent>
#include <QFontMetricsF>
#include <QPainter>
#include <QScrollBar>
#include <QToolButton>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::Interval;
using traces::TimeNs;

constexpr double kFollowedSteps = 2.2; // how many steps a followed run shows before the user zooms

} // namespace

TimelineWidget::TimelineWidget(TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), painter_(Theme::of(ThemeKind::Light), font()),
      emptyHeadline_(tr("Nothing to show yet")), emptyHint_(tr("Set up a pipeline, or open a trace.")),
      hover_(new HoverLayer(this)), scrollBar_(new QScrollBar(Qt::Vertical, this)), followButton_(new QToolButton(this)),
      search_(new TimelineSearch(scene, this)), searchBar_(new SearchBar(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Timeline"));
    setAccessibleDescription(tr("Blocks of work of each rank over time. Arrow keys step through the blocks."));
    scrollBar_->setAccessibleName(tr("Scroll lanes"));
    followButton_->setText(tr("Follow"));
    followButton_->setToolTip(tr("Keep the newest blocks in view while a run adds to the timeline (L)"));
    followButton_->setCheckable(true);
    followButton_->setFocusPolicy(Qt::TabFocus);
    followButton_->hide();

    connect(followButton_, &QToolButton::clicked, this, &TimelineWidget::setFollowing);
    connect(scrollBar_, &QScrollBar::valueChanged, this, &TimelineWidget::invalidate);
    connect(&scene_, &TimelineScene::sourcesChanged, this, &TimelineWidget::onSourcesChanged);
    connect(&scene_, &TimelineScene::dataChanged, this, &TimelineWidget::onDataChanged);
    connect(&scene_, &TimelineScene::analysed, this, &TimelineWidget::onAnalysed);
    connect(&scene_.axis(), &TimeAxis::rangeChanged, this, &TimelineWidget::invalidate);
    connect(&scene_.axis(), &TimeAxis::moved, this, [this] { setFollowing(false); });
    makeSearchBar();
    relayout();
}

TimelineWidget::~TimelineWidget() = default;

QSize TimelineWidget::sizeHint() const { return {900, 420}; }

QSize TimelineWidget::minimumSizeHint() const
{
    return {static_cast<int>(painter_.headerWidth()) + 160, static_cast<int>(painter_.rulerHeight()) + 60};
}

double TimelineWidget::rightMargin() const { return scrollBar_->sizeHint().width(); }

QRectF TimelineWidget::area() const
{
    const int bar = searchBar_->isHidden() ? 0 : searchBar_->sizeHint().height();
    return {0, 0, std::max(0.0, width() - rightMargin()), static_cast<double>(std::max(0, height() - bar))};
}

QRectF TimelineWidget::lanesRect() const { return painter_.lanesRect(area()); }

double TimelineWidget::scroll() const { return scrollBar_->value(); }

ShownTimeline TimelineWidget::shown() const
{
    return {static_cast<int>(std::lround(area().width())), lanesRect().height(), scroll(), selection_, folded_, criticalPath_};
}

TimeMapping TimelineWidget::mapping() const
{
    const QRectF lanes = lanesRect();
    return scene_.axis().mapping(lanes.left(), lanes.width());
}

TimelineItem TimelineWidget::itemAt(QPointF pos) const { return ui::itemAt(scene_, layout_, {lanesRect(), scroll(), mapping()}, pos); }

void TimelineWidget::setTheme(const Theme& theme)
{
    painter_.setTheme(theme);
    hover_->setTheme(theme);
    invalidate();
}

void TimelineWidget::setEmptyText(const QString& headline, const QString& hint)
{
    emptyHeadline_ = headline;
    emptyHint_ = hint;
    invalidate();
}

void TimelineWidget::relayout()
{
    const QRectF lanes = lanesRect();
    LayoutOptions options;
    options.fitHeight = lanes.height();
    layout_ = LaneLayout(scene_, options, folded_);
    scrollBar_->setRange(0, std::max(0, static_cast<int>(std::ceil(layout_.height() - lanes.height()))));
    scrollBar_->setPageStep(std::max(1, static_cast<int>(lanes.height())));
    scrollBar_->setSingleStep(24);
    scrollBar_->setVisible(scrollBar_->maximum() > 0);
    invalidate();
}

void TimelineWidget::invalidate()
{
    pictureValid_ = false;
    hoverAt(lastPos_);
    update();
}

void TimelineWidget::onSourcesChanged()
{
    hovered_ = {};
    if (drag_ == Drag::Move) cancelDrag(); // the block that is held may be gone
    onDataChanged();
}

// The same block where it is still there, however the sources changed; nothing where it is gone.
void TimelineWidget::findSelectionAgain()
{
    if (selection_.none()) return;
    const TimelineItem found = selected_.find(scene_);
    if (found.none()) {
        const ItemIdentity gone = selected_;
        clearSelection();
        if (gone.isBubble()) awaited_ = gone;
        return;
    }
    selection_ = found;
    selected_ = ItemIdentity(scene_, found);
    describeSelection();
    emit selectionGrew(selection_);
}

// There are bubbles now that were not known before, and among them may be the one that was selected.
void TimelineWidget::onAnalysed()
{
    invalidate();
    findSelectionAgain();
    if (!selection_.none() || !awaited_) return;
    const TimelineItem found = awaited_->find(scene_);
    if (!found.none()) select(found);
}

void TimelineWidget::onDataChanged()
{
    relayout(); // first: whatever hears of the rest looks for the mouse among rows of the sources that are there now
    findSelectionAgain();
    followButton_->setVisible(scene_.growing());
    if (!scene_.growing() && following_) setFollowing(false);
    followNewest();
}

void TimelineWidget::followNewest()
{
    if (!following_ || scene_.reference() < 0) return;
    TimeAxis& axis = scene_.axis();
    double length = axis.range().length;
    if (axis.showsAll()) {
        // All stays in view until it is more than a few steps.
        const auto& steps = scene_.steps(scene_.reference()).all();
        if (steps.empty() || !steps.front().finished) return;
        const double wanted = kFollowedSteps * static_cast<double>(steps.front().span.length());
        if (wanted >= length) return;
        length = wanted;
    }
    axis.follow(scene_.newest(), length);
}

void TimelineWidget::setFollowing(bool following)
{
    followButton_->setChecked(following);
    if (following == following_) return;
    following_ = following;
    followNewest();
    emit followingChanged(following);
}

void TimelineWidget::setCriticalPath(bool shown)
{
    if (shown == criticalPath_) return;
    criticalPath_ = shown;
    invalidate();
    emit criticalPathChanged(shown);
}

// Works out what the hover layer shows; the lanes' picture stays as it is.
void TimelineWidget::hoverAt(QPointF pos)
{
    lastPos_ = pos;
    const QRectF lanes = lanesRect();
    const TimeMapping map = mapping();
    HoverLayer::State state;
    state.lanes = lanes;
    state.focus = hasFocus();
    const bool inside = mouseInside_ && lanes.contains(pos) && !scene_.empty();
    // Drawn where that whole nanosecond is: other views are told the time, and draw it there too.
    const auto cursor = inside && drag_ != Drag::Pan ? std::optional(map.time(pos.x())) : scene_.empty() ? std::nullopt : otherHover_;
    if (cursor) {
        state.cursor = map.x(*cursor);
        state.cursorText = durationText(std::max<TimeNs>(0, *cursor));
    }
    hovered_ = inside && (drag_ == Drag::None || drag_ == Drag::Pending) ? itemAt(pos) : TimelineItem{};
    if (hovered_ != selection_) state.item = itemRect(scene_, layout_, {lanes, scroll(), map}, hovered_);
    if (drag_ == Drag::Box) state.box = QRectF(QPointF(pressPos_.x(), lanes.top()), QPointF(pos.x(), lanes.bottom())).normalized() & lanes;
    describeHeld(state, pos);
    if (measurement_) {
        state.span = QRectF(QPointF(map.x(measurement_->begin), lanes.top()), QPointF(map.x(measurement_->end), lanes.bottom()));
        state.spanText = durationText(measurement_->length());
    }
    hover_->setState(state);
}

void TimelineWidget::setHoverTime(std::optional<TimeNs> shown)
{
    otherHover_ = shown;
    hoverAt(lastPos_);
}

void TimelineWidget::setMeasurement(std::optional<Interval> measurement)
{
    if (measurement == measurement_) return;
    measurement_ = measurement;
    hoverAt(lastPos_);
    emit measurementChanged(measurement_);
}

void TimelineWidget::paintPicture()
{
    const double ratio = devicePixelRatioF();
    const QSize pixels = (QSizeF(size()) * ratio).toSize();
    if (picture_.size() != pixels) picture_ = QPixmap(pixels);
    picture_.setDevicePixelRatio(ratio);
    QPainter painter(&picture_);
    if (scene_.empty()) {
        painter.fillRect(rect(), painter_.theme().base);
        paintEmptyState(painter);
    } else {
        TimelineView view;
        view.area = area();
        view.range = scene_.axis().range();
        view.scroll = scroll();
        view.selection = selection_;
        view.criticalPath = criticalPath_;
        view.deviceRatio = ratio;
        painter_.paint(painter, scene_, layout_, view);
        painter.fillRect(QRectF(view.area.right(), 0, rightMargin(), height()), painter_.theme().base);
    }
    pictureValid_ = true;
}

void TimelineWidget::paintEmptyState(QPainter& painter) const
{
    QFont headline = font();
    headline.setPointSizeF(font().pointSizeF() * 1.4);
    headline.setWeight(QFont::DemiBold);
    const QRectF half(24, 0, width() - 48, height() / 2.0 - 6);
    painter.setFont(headline);
    painter.setPen(painter_.theme().text);
    painter.drawText(half, Qt::AlignHCenter | Qt::AlignBottom | Qt::TextWordWrap, emptyHeadline_);
    painter.setFont(font());
    painter.setPen(painter_.theme().mutedText);
    painter.drawText(half.translated(0, height() / 2.0 + 6), Qt::AlignHCenter | Qt::AlignTop | Qt::TextWordWrap, emptyHint_);
}

void TimelineWidget::paintEvent(QPaintEvent*)
{
    if (!pictureValid_ || picture_.devicePixelRatio() != devicePixelRatioF()) paintPicture();
    QPainter painter(this);
    painter.drawPixmap(0, 0, picture_);
}

void TimelineWidget::resizeEvent(QResizeEvent*) { placeChildren(); }

void TimelineWidget::placeChildren()
{
    hover_->setGeometry(rect());
    const int bar = static_cast<int>(rightMargin());
    const int top = static_cast<int>(painter_.rulerHeight());
    scrollBar_->setGeometry(width() - bar, top, bar, std::max(0, static_cast<int>(area().height()) - top));
    placeSearchBar();
    followButton_->setGeometry(8, 8, static_cast<int>(painter_.headerWidth()) - 16, followButton_->sizeHint().height());
    relayout();
}

void TimelineWidget::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::FontChange) {
        painter_.setFont(font());
        relayout();
    }
    QWidget::changeEvent(event);
}

void TimelineWidget::select(const TimelineItem& item)
{
    if (item == selection_) return;
    selection_ = item;
    selected_ = ItemIdentity(scene_, item);
    awaited_.reset();
    if (!item.none()) scrollTo(item);
    describeSelection();
    invalidate();
    emit selectionChanged(selection_);
}

void TimelineWidget::describeSelection()
{
    const ItemDetails details = detailsOf(scene_, selection_);
    QStringList words{details.title.isEmpty() ? tr("Nothing selected") : details.title};
    for (const auto& [name, value] : details.lines) words << name + QLatin1Char(' ') + value;
    setAccessibleDescription(words.join(QStringLiteral(", ")));
}

void TimelineWidget::selectAndShow(const TimelineItem& item)
{
    select(item);
    const auto span = scene_.shownSpan(item);
    if (!span) return;
    TimeAxis& axis = scene_.axis();
    const TimeRange& range = axis.range();
    const double left = range.at(span->begin);
    const double right = range.at(span->end);
    if (left >= 0 && right <= range.length) return;
    // Moves no further than needed, with some room around the block.
    const double room = 0.1 * range.length;
    axis.pan(left < 0 ? left - room : std::min(left - room, right + room - range.length));
}

void TimelineWidget::scrollTo(const TimelineItem& item)
{
    traces::LaneId lane = item.slice.lane;
    if (item.kind == TimelineItem::Kind::Gap) {
        const auto own = scene_.trace(item.source).findLane(item.gap.rank, traces::LaneKind::Compute);
        if (!own) return;
        lane = *own;
    }
    const Row* row = layout_.rowOf(item.source, lane);
    if (!row) return;
    const double view = lanesRect().height();
    if (row->y < scroll()) scrollBar_->setValue(static_cast<int>(row->y) - 30);
    else if (row->bottom() > scroll() + view) scrollBar_->setValue(static_cast<int>(row->bottom() - view) + 10);
}

void TimelineWidget::toggleFold(const RankGroup& group)
{
    const std::pair key{scene_.role(group.source), group.rank};
    if (!folded_.erase(key)) folded_.insert(key);
    relayout();
}

void TimelineWidget::setAllFolded(bool folded)
{
    folded_.clear();
    if (folded)
        for (const RankGroup& group : layout_.groups())
            if (group.foldable) folded_.emplace(scene_.role(group.source), group.rank);
    relayout();
}

} // namespace stagecraft::ui
