// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_canvas.h"

#include "ui/theme/contrast.h"
#include "ui/timeline/time_ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace stagecraft::ui {
namespace {

constexpr double kLargestRadius = 3;
constexpr int kHatchPeriod = 7;
constexpr double kLabelPadding = 3;
constexpr double kFullLabel = 120; // narrower blocks never have room for a full label

QRgb blend(QRgb under, QRgb over, double share)
{
    // Red and blue together, then green: 8 bits each with room above them.
    const auto part = static_cast<quint32>(share * 256 + 0.5);
    const quint32 redBlue = ((under & 0xff00ff) * (256 - part) + (over & 0xff00ff) * part + 0x800080) >> 8 & 0xff00ff;
    const quint32 green = ((under & 0x00ff00) * (256 - part) + (over & 0x00ff00) * part + 0x008000) >> 8 & 0x00ff00;
    return 0xff000000 | redBlue | green;
}

int hatchPeriod(double ratio) { return std::max(4, static_cast<int>(std::lround(kHatchPeriod * ratio))); }

// One pixel stays free between touching blocks, as soon as they are wide enough to spare it.
double blockRight(const SweepBlock& block, double ratio)
{
    const double spare = (block.right - block.left) / ratio - LaneSweep::kBlockPixels;
    return block.right - ratio * std::clamp(spare / 3, 0.0, 1.0);
}

} // namespace

void LaneCanvas::begin(QSize pixels, int upper, double deviceRatio, const Theme& theme, std::vector<int> grid)
{
    if (image_.size() != pixels) image_ = QImage(pixels, QImage::Format_RGB32);
    upper_ = upper;
    ratio_ = deviceRatio;
    theme_ = theme;
    grid_ = std::move(grid);
    row_.resize(static_cast<std::size_t>(pixels.width()));
    filled_ = 0;
}

void LaneCanvas::fillGround(int until)
{
    const QRgb ground = theme_.base.rgb();
    for (; filled_ < std::min(until, image_.height()); ++filled_) std::fill_n(line(filled_), image_.width(), ground);
}

const QImage& LaneCanvas::finish()
{
    fillGround(image_.height());
    return image_;
}

std::vector<QRgb> LaneCanvas::composeRow(const LaneSweep& sweep, const LaneStyle& style, QRgb ground)
{
    std::vector<QRgb> row(sweep.columns().size(), ground);
    compose(row, sweep, style, 1);
    return row;
}

void LaneCanvas::compose(std::vector<QRgb>& row, const LaneSweep& sweep, const LaneStyle& style, double ratio)
{
    const auto columns = sweep.columns();
    for (std::size_t x = 0; x < row.size(); ++x) {
        if (columns[x].cover > 0) row[x] = mixedOn(row[x], columns[x]);
    }
    const auto width = static_cast<double>(row.size());
    for (const SweepBlock& block : sweep.blocks()) {
        const double left = std::max(0.0, block.left);
        const double right = std::min(width, blockRight(block, ratio));
        if (right <= left) continue;
        const QRgb colour = style.colour(block.colour);
        const auto first = static_cast<std::size_t>(std::ceil(left));
        const auto last = static_cast<std::size_t>(std::floor(right));
        if (first > 0 && static_cast<double>(first) > left)
            row[first - 1] = blend(row[first - 1], colour, static_cast<double>(first) - left);
        for (std::size_t x = first; x < last; ++x) row[x] = colour;
        if (last < row.size() && last >= first && right > static_cast<double>(last))
            row[last] = blend(row[last], colour, right - static_cast<double>(last));
    }
}

// How much of each pixel of a corner lies outside its arc, from the outermost row inwards.
const LaneCanvas::Corner& LaneCanvas::corner(double radius)
{
    const auto key = static_cast<std::size_t>(std::lround(radius * 2));
    if (corners_.size() <= key) corners_.resize(key + 1);
    Corner& corner = corners_[key];
    if (corner.cells > 0) return corner;
    const double rounded = static_cast<double>(key) / 2;
    corner.cells = std::max(1, static_cast<int>(std::ceil(rounded)));
    for (int dy = 0; dy < corner.cells; ++dy)
        for (int dx = 0; dx < corner.cells; ++dx)
            corner.outside.push_back(std::clamp(std::hypot(rounded - dx - 0.5, rounded - dy - 0.5) - rounded + 0.5, 0.0, 1.0));
    return corner;
}

void LaneCanvas::roundCorners(const LanePicture& picture, QRgb ground)
{
    const int top = static_cast<int>(std::lround(picture.top));
    const int bottom = static_cast<int>(std::lround(picture.top + picture.height));
    const int width = image_.width();
    const double tallest = std::min(kLargestRadius * ratio_, (bottom - top) / 3.0);
    for (const SweepBlock& block : picture.sweep->blocks()) {
        const double right = blockRight(block, ratio_);
        const double radius = std::min(tallest, (right - block.left) / 3);
        if (radius < 1.5) continue;
        const Corner& shape = corner(radius);
        const bool leftSeen = block.left >= 0;
        const bool rightSeen = right <= width;
        const int leftColumn = static_cast<int>(std::lround(block.left));
        const int rightColumn = static_cast<int>(std::lround(right)) - 1;
        for (int dy = 0; dy < shape.cells; ++dy) {
            for (const int y : {top + dy, bottom - 1 - dy}) {
                if (y < 0 || y >= image_.height()) continue;
                QRgb* pixels = line(y);
                for (int dx = 0; dx < shape.cells; ++dx) {
                    const double share = shape.outside[static_cast<std::size_t>(dy * shape.cells + dx)];
                    if (share <= 0) continue;
                    if (leftSeen && leftColumn + dx < width) pixels[leftColumn + dx] = blend(pixels[leftColumn + dx], ground, share);
                    if (rightSeen && rightColumn - dx >= 0 && rightColumn - dx < width)
                        pixels[rightColumn - dx] = blend(pixels[rightColumn - dx], ground, share);
                }
            }
        }
    }
}

void LaneCanvas::stroke(const QRect& area, int slant, int phase, QRgb colour)
{
    const int period = hatchPeriod(ratio_);
    std::vector<double> shares(static_cast<std::size_t>(period), 0); // of the stroke, along x
    const double thickness = 2.0 * ratio_;
    for (int i = 0; i < period; ++i) shares[static_cast<std::size_t>(i)] = std::clamp(std::min(i + 1.0, thickness) - i, 0.0, 1.0);
    shares.back() = 0.5;
    const QRect seen = area & image_.rect();
    for (int y = seen.top(); y <= seen.bottom(); ++y) {
        QRgb* pixels = line(y);
        int place = (seen.left() + slant * y + phase) % period;
        if (place < 0) place += period;
        for (int x = seen.left(); x <= seen.right(); ++x) {
            if (const double share = shares[static_cast<std::size_t>(place)]; share > 0) pixels[x] = blend(pixels[x], colour, share);
            if (++place == period) place = 0;
        }
    }
}

void LaneCanvas::hatchBubbles(const LanePicture& picture)
{
    const int top = static_cast<int>(std::lround(picture.top));
    const int bottom = static_cast<int>(std::lround(picture.top + picture.height));
    for (const Bubble& bubble : *picture.bubbles) {
        const int left = std::max(0, static_cast<int>(std::ceil(bubble.left)));
        const int right = std::min(image_.width(), static_cast<int>(std::floor(bubble.right)));
        stroke(QRect(left, top, right - left, bottom - top), 1, upper_, theme_.hatch.rgb()); // over what is there: a rank may stand in a receipt while it idles
    }
}

void LaneCanvas::hatchBlocks(const LanePicture& picture)
{
    const int top = static_cast<int>(std::lround(picture.top));
    const int bottom = static_cast<int>(std::lround(picture.top + picture.height));
    const auto width = static_cast<double>(image_.width());
    for (const SweepBlock& block : picture.sweep->blocks()) {
        if (!LaneStyle::hatched(block.colour)) continue;
        const int left = static_cast<int>(std::lround(std::max(0.0, block.left)));
        const int right = static_cast<int>(std::lround(std::min(width, blockRight(block, ratio_))));
        // The strokes move with their block, whose left may be far out of sight.
        const int phase = static_cast<int>(std::lround(std::fmod(block.left, hatchPeriod(ratio_))));
        stroke(QRect(left, top, right - left, bottom - top), -1, top - phase, picture.style->stroke(block.colour));
    }
}

void LaneCanvas::label(const LanePicture& picture)
{
    const double unitHeight = picture.height / ratio_;
    const int size = static_cast<int>(std::lround(std::min(12.0, unitHeight * 0.66) * ratio_));
    if (size < 8 * ratio_) return;
    blockMasks_.setFont(font_, size);
    const double padding = kLabelPadding * ratio_;
    const auto width = static_cast<double>(row_.size());
    for (const SweepBlock& block : picture.sweep->blocks()) {
        const double left = std::max(0.0, block.left);
        const double right = std::min(width, blockRight(block, ratio_));
        const double room = right - left - 2 * padding;
        if (room < size / 2.0) continue;
        const LabelMask* mask = nullptr;
        const auto fits = [&](const LabelMask& candidate) {
            if (candidate.width > room) return false;
            mask = &candidate;
            return true;
        };
        const int number = picture.lane->action(block.slice).microbatch().value;
        const bool unnamed = picture.lane->action(block.slice).kind() == traces::ActionKind::None;
        // Without a long text in sight, both labels are short ones that the masks keep.
        if (number >= 0 && !unnamed && room < kFullLabel * ratio_) {
            const bool sliced = picture.trace->info.slices > 1;
            if (!fits(sliced ? blockMasks_.text(microbatchText(picture.trace->info, traces::MicroBatch{number})) : blockMasks_.number(number))) continue;
            if (room >= 1.5 * size)
                fits(blockMasks_.text(blockLabel(*picture.trace, picture.lane->slice(block.slice), LabelDetail::Short)));
        } else {
            const traces::Slice slice = picture.lane->slice(block.slice);
            const bool full = !unnamed && room >= kFullLabel * ratio_ &&
                              fits(blockMasks_.text(blockLabel(*picture.trace, slice, LabelDetail::Full)));
            if (!full && !fits(blockMasks_.text(blockLabel(*picture.trace, slice, LabelDetail::Short))) && unnamed)
                fits(blockMasks_.text(blockLabel(*picture.trace, slice, LabelDetail::Number)));
        }
        if (!mask) continue;
        const int x = static_cast<int>(std::lround((left + right - mask->width) / 2));
        const int y = static_cast<int>(std::lround(picture.top + (picture.height - mask->height) / 2));
        LabelMasks::blend(image_, x, y, *mask, picture.style->ink(block.colour));
    }
}

void LaneCanvas::labelBubbles(const LanePicture& picture, QRgb ground)
{
    if (picture.height / ratio_ < 18) return;
    const int size = static_cast<int>(std::lround(11 * ratio_));
    bubbleMasks_.setFont(font_, size);
    const int padding = static_cast<int>(std::lround(5 * ratio_));
    for (const Bubble& bubble : *picture.bubbles) {
        const Stretch free = freePart(bubble, picture.sweep->blocks());
        const double room = free.right - free.left - 4 * padding;
        if (room < 3 * size) continue;
        const QString duration = durationText(bubble.length);
        const LabelMask* mask = &bubbleMasks_.text(causeText(bubble) + QStringLiteral(" \u00b7 ") + duration);
        if (mask->width > room) mask = &bubbleMasks_.text(duration);
        if (mask->width > room) continue;
        const int x = static_cast<int>(std::lround((free.left + free.right - mask->width) / 2));
        const int y = static_cast<int>(std::lround(picture.top + (picture.height - mask->height) / 2));
        for (int row = std::max(0, y); row < std::min(image_.height(), y + mask->height); ++row) {
            QRgb* pixels = line(row);
            std::fill(pixels + std::max(0, x - padding), pixels + std::min(image_.width(), x + mask->width + padding), ground);
        }
        LabelMasks::blend(image_, x, y, *mask, theme_.bubbleText.rgb());
    }
}

void LaneCanvas::outlineGhost(const LanePicture& picture)
{
    const int thickness = std::max(1, static_cast<int>(std::lround(1.5 * ratio_)));
    const int top = static_cast<int>(std::lround(picture.top));
    const int bottom = static_cast<int>(std::lround(picture.top + picture.height));
    const QRgb ink = theme_.ghost.rgb();
    for (const SweepBlock& block : picture.ghost->blocks()) {
        const int left = static_cast<int>(std::lround(block.left));
        const int right = static_cast<int>(std::lround(blockRight(block, ratio_)));
        if (right - left < 4 * thickness) continue;
        for (int y = std::max(0, top); y < std::min(image_.height(), bottom); ++y) {
            QRgb* pixels = line(y);
            const bool edge = y < top + thickness || y >= bottom - thickness;
            const auto stroke = [&](int from, int to) {
                for (int x = std::max(0, from); x < std::min(image_.width(), to); ++x) pixels[x] = blend(pixels[x], ink, 0.72);
            };
            if (edge) stroke(left, right);
            else {
                stroke(left, left + thickness);
                stroke(right - thickness, right);
            }
        }
    }
}

void LaneCanvas::paint(const LanePicture& picture)
{
    const int top = std::max(0, static_cast<int>(std::lround(picture.top)));
    const int bottom = std::min(image_.height(), static_cast<int>(std::lround(picture.top + picture.height)));
    if (bottom <= top) return;
    const QRgb ground = (picture.sub ? theme_.subLane : theme_.lane).rgb();
    std::fill(row_.begin(), row_.end(), ground);
    const QRgb gridColour = mixed(QColor(ground), theme_.line, 0.55).rgb();
    for (const int column : grid_)
        if (column >= 0 && column < static_cast<int>(row_.size())) row_[static_cast<std::size_t>(column)] = gridColour;
    compose(row_, *picture.sweep, *picture.style, ratio_);
    fillGround(top);
    for (int y = top; y < bottom; ++y) std::memcpy(line(y), row_.data(), row_.size() * sizeof(QRgb));
    filled_ = bottom;
    hatchBlocks(picture);
    hatchBubbles(picture);
    if (!picture.sub) {
        roundCorners(picture, ground);
        labelBubbles(picture, ground);
        label(picture);
    }
    if (picture.ghost) outlineGhost(picture);
}

} // namespace stagecraft::ui
