// SPDX-License-Identifier: GPL-3.0-or-later
//
// Geometry cut to a rectangle, for paint devices that do not clip (Qt's SVG generator).
#pragma once

#include <QLineF>
#include <QPainterPath>
#include <QRectF>

#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft::ui {

// The part of a line within a rectangle (Liang and Barsky).
std::optional<QLineF> clippedLine(const QLineF& line, const QRectF& rect);

// A path as the pieces of line that lie within a rectangle.
std::vector<QLineF> clippedPath(const QPainterPath& path, const QRectF& rect);

// The slanted lines of a hatch in a box: rising ones mark idle time, falling ones a kind of block.
enum class Slant : std::uint8_t { Rising, Falling };
std::vector<QLineF> hatchOf(const QRectF& box, Slant slant = Slant::Rising);
inline constexpr double kHatchPen = 1.4;

} // namespace stagecraft::ui
