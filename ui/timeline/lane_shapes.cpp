// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_shapes.h"

#include "ui/theme/contrast.h"
#include "ui/timeline/clip.h"
#include "ui/timeline/time_ticks.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

QFont sizedFont(const QFont& font, double pixels)
{
    QFont sized = font;
    sized.setPixelSize(std::max(1, static_cast<int>(std::lround(pixels))));
    return sized;
}

void drawCentred(QPainter& painter, const QRectF& box, const QString& text)
{
    const QFontMetricsF metrics(painter.font());
    painter.drawText(QPointF(box.center().x() - metrics.horizontalAdvance(text) / 2,
                             box.center().y() + (metrics.ascent() - metrics.descent()) / 2),
                     text);
}

} // namespace

LaneShapes::LaneShapes(QPainter& painter, const QRectF& area, const Theme& theme, const QFont& font, std::vector<int> grid)
    : painter_(painter), area_(area), theme_(theme), font_(font), grid_(std::move(grid))
{
    painter_.fillRect(area_, theme_.base);
}

void LaneShapes::fillColumns(const LanePicture& picture, const QRectF& row, const QColor& ground)
{
    const auto columns = picture.sweep->columns();
    const auto colourAt = [&](std::size_t x) {
        return columns[x].cover > 0 ? QColor(mixedOn(ground.rgb(), columns[x])) : QColor();
    };
    for (std::size_t x = 0; x < columns.size();) {
        const QColor colour = colourAt(x);
        std::size_t end = x + 1;
        while (end < columns.size() && colourAt(end) == colour) ++end;
        if (colour.isValid()) {
            const QRectF run(area_.left() + static_cast<double>(x), row.top(), static_cast<double>(end - x), row.height());
            painter_.fillRect(run & area_, colour);
        }
        x = end;
    }
}

void LaneShapes::hatch(const Bubble& bubble, const QRectF& row)
{
    const QRectF box(area_.left() + bubble.left, row.top(), bubble.right - bubble.left, row.height());
    painter_.setPen(QPen(theme_.hatch, kHatchPen));
    for (const QLineF& line : hatchOf(box)) painter_.drawLine(line);
}

void LaneShapes::labelBubble(const Bubble& bubble, const LanePicture& picture, const QRectF& row, const QColor& ground)
{
    if (row.height() < 18) return;
    const Stretch free = freePart(bubble, picture.sweep->blocks());
    const QRectF box(area_.left() + free.left, row.top(), free.right - free.left, row.height());
    painter_.setFont(sizedFont(font_, 11));
    const QFontMetricsF metrics(painter_.font());
    const QString duration = durationText(bubble.length);
    for (const QString& text : {causeText(bubble) + QStringLiteral(" \u00b7 ") + duration, duration}) {
        const double width = metrics.horizontalAdvance(text);
        if (width + 20 > box.width()) continue;
        painter_.fillRect(QRectF(box.center().x() - width / 2 - 5, box.center().y() - metrics.height() / 2, width + 10, metrics.height()), ground);
        painter_.setPen(theme_.bubbleText);
        drawCentred(painter_, box, text);
        break;
    }
}

QRectF LaneShapes::boxOf(const SweepBlock& block, const QRectF& row) const
{
    const double spare = block.right - block.left - LaneSweep::kBlockPixels;
    const double right = block.right - std::clamp(spare / 3, 0.0, 1.0);
    return QRectF(area_.left() + block.left, row.top(), right - block.left, row.height()) & area_;
}

void LaneShapes::block(const SweepBlock& block, const LanePicture& picture, const QRectF& row)
{
    const QRectF box = boxOf(block, row);
    if (box.isEmpty()) return;
    const QColor colour(picture.style->colour(block.colour));
    const double radius = picture.sub ? 0 : std::min({3.0, box.width() / 3, box.height() / 3});
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(colour);
    painter_.drawRoundedRect(box, radius, radius);
    if (!LaneStyle::hatched(block.colour)) return;
    painter_.setPen(QPen(QColor(picture.style->stroke(block.colour)), kHatchPen, Qt::SolidLine, Qt::FlatCap));
    for (const QLineF& line : hatchOf(box.adjusted(0.5, 0.5, -0.5, -0.5), Slant::Falling)) painter_.drawLine(line);
}

void LaneShapes::labelBlock(const SweepBlock& block, const LanePicture& picture, const QRectF& row)
{
    const QRectF box = boxOf(block, row);
    const double size = std::min(12.0, row.height() * 0.66);
    if (box.isEmpty() || picture.sub || size < 8) return;

    painter_.setFont(sizedFont(font_, size));
    painter_.setPen(QColor(picture.style->ink(block.colour)));
    const QFontMetricsF metrics(painter_.font());
    const traces::Slice slice = picture.lane->slice(block.slice);
    for (const LabelDetail detail : {LabelDetail::Full, LabelDetail::Short, LabelDetail::Number}) {
        const QString text = blockLabel(*picture.trace, slice, detail);
        if (text.isEmpty() || metrics.horizontalAdvance(text) + 6 > box.width()) continue;
        drawCentred(painter_, box, text);
        break;
    }
}

void LaneShapes::paint(const LanePicture& picture)
{
    const QRectF row = QRectF(area_.left(), area_.top() + picture.top, area_.width(), picture.height) & area_;
    if (row.isEmpty()) return;
    const QColor ground = picture.sub ? theme_.subLane : theme_.lane;
    painter_.fillRect(row, ground);
    const QColor gridColour = mixed(ground, theme_.line, 0.55);
    for (const int column : grid_)
        if (column >= 0 && column < area_.width()) painter_.fillRect(QRectF(area_.left() + column, row.top(), 1, row.height()), gridColour);
    fillColumns(picture, row, ground);
    for (const SweepBlock& one : picture.sweep->blocks()) block(one, picture, row);
    for (const Bubble& bubble : *picture.bubbles) hatch(bubble, row); // over the receipts in which a rank idles
    for (const Bubble& bubble : *picture.bubbles) labelBubble(bubble, picture, row, ground);
    for (const SweepBlock& one : picture.sweep->blocks()) labelBlock(one, picture, row);
    if (!picture.ghost) return;
    QColor outline = theme_.ghost;
    outline.setAlphaF(0.72F);
    painter_.setPen(QPen(outline, 1.5));
    painter_.setBrush(Qt::NoBrush);
    for (const SweepBlock& one : picture.ghost->blocks()) {
        const QRectF box = QRectF(area_.left() + one.left, row.top(), one.right - one.left - 1, row.height()) & area_;
        if (box.width() >= 6) painter_.drawRect(box.adjusted(0.75, 0.75, -0.75, -0.75));
    }
}

} // namespace stagecraft::ui
