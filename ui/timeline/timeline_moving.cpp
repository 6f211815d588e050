// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks of the timeline that are moved to another place in their lane.
#include "ui/timeline/arrow_painter.h"
#include "ui/timeline/block_mover.h"
#include "ui/timeline/timeline_widget.h"

#include <utility>

namespace stagecraft::ui {
namespace {

using traces::TimeNs;

// The slice of a lane in front of which something is dropped at a moment of the trace.
std::uint32_t placeAt(const traces::Lane& lane, TimeNs time)
{
    const std::size_t at = lane.firstEndingAfter(time);
    if (at == lane.size() || time < lane.begin(at)) return static_cast<std::uint32_t>(at);
    const bool inFirstHalf = time < lane.begin(at) + (lane.end(at) - lane.begin(at)) / 2;
    return static_cast<std::uint32_t>(inFirstHalf ? at : at + 1);
}

} // namespace

void TimelineWidget::setMoving(bool moving)
{
    if (moving == moving_) return;
    moving_ = moving;
    if (drag_ == Drag::Move) cancelDrag();
    emit movingChanged(moving);
}

bool TimelineWidget::mayMove(const TimelineItem& item) const
{
    return mover_ && item.kind == TimelineItem::Kind::Slice && scene_.shownSpan(item) && mover_->mayMove(item);
}

TimeNs TimelineWidget::shiftOf(const TimelineItem& item) const
{
    return scene_.segments(item.source)[static_cast<std::size_t>(item.segment)].shift;
}

// Works out where the held block would fall; the mover is asked only when that is another place.
void TimelineWidget::holdAt(QPointF pos)
{
    if (!held_ || !scene_.shownSpan(held_->item)) return;
    const traces::Lane& lane = scene_.trace(held_->item.source).lane(held_->item.slice.lane);
    const std::uint32_t before = placeAt(lane, mapping().time(pos.x()) - shiftOf(held_->item));
    if (before == held_->before) return;
    held_->before = before;
    const std::uint32_t own = held_->item.slice.index;
    held_->verdict = before == own || before == own + 1 ? BlockMover::Verdict{} : mover_->judge(held_->item, before);
}

void TimelineWidget::dropHeld()
{
    const std::optional<HeldBlock> held = std::exchange(held_, std::nullopt);
    if (!held || !scene_.shownSpan(held->item)) return;
    const std::uint32_t own = held->item.slice.index;
    if (held->before != own && held->before != own + 1) mover_->move(held->item, held->before);
}

void TimelineWidget::moveSelection(Direction direction)
{
    if (!mayMove(selection_)) return;
    const traces::Lane& lane = scene_.trace(selection_.source).lane(selection_.slice.lane);
    const std::uint32_t own = selection_.slice.index;
    if (direction == Direction::Back ? own == 0 : own + 1 >= lane.size()) return;
    mover_->move(selection_, direction == Direction::Back ? own - 1 : own + 2);
}

void TimelineWidget::describeHeld(HoverLayer::State& state, QPointF pos) const
{
    if (drag_ != Drag::Move || !held_) return;
    const QRectF lanes = lanesRect();
    const TimeMapping map = mapping();
    const QRectF block = itemRect(scene_, layout_, {lanes, scroll(), map}, held_->item);
    const Row* row = layout_.rowOf(held_->item.source, held_->item.slice.lane);
    if (!row) return;
    const traces::Lane& lane = scene_.trace(held_->item.source).lane(held_->item.slice.lane);
    const TimeNs at = held_->before < lane.size() ? lane.begin(held_->before) : lane.lastEnd();
    const double top = lanes.top() + row->y - scroll();
    state.held = block.translated(pos.x() - pressPos_.x(), 0) & lanes;
    state.drop = QRectF(map.x(at + shiftOf(held_->item)), top, 0, row->height);
    state.dropLegal = held_->verdict.legal;
    state.dropText = held_->verdict.message;
}

} // namespace stagecraft::ui
