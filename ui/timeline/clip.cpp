// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/clip.h"

#include <QPolygonF>

#include <algorithm>
#include <array>

namespace stagecraft::ui {

std::optional<QLineF> clippedLine(const QLineF& line, const QRectF& rect)
{
    struct Edge {
        double towards; // how fast the line leaves over this edge
        double room;
    };
    const std::array<Edge, 4> edges{{{-line.dx(), line.x1() - rect.left()},
                                     {line.dx(), rect.right() - line.x1()},
                                     {-line.dy(), line.y1() - rect.top()},
                                     {line.dy(), rect.bottom() - line.y1()}}};
    double enter = 0;
    double leave = 1;
    for (const Edge& edge : edges) {
        if (edge.towards == 0) {
            if (edge.room < 0) return std::nullopt;
        } else if (edge.towards < 0) enter = std::max(enter, edge.room / edge.towards);
        else leave = std::min(leave, edge.room / edge.towards);
    }
    if (enter >= leave) return std::nullopt;
    return QLineF(line.pointAt(enter), line.pointAt(leave));
}

std::vector<QLineF> clippedPath(const QPainterPath& path, const QRectF& rect)
{
    std::vector<QLineF> pieces;
    for (const QPolygonF& polygon : path.toSubpathPolygons())
        for (qsizetype i = 1; i < polygon.size(); ++i)
            if (const auto piece = clippedLine({polygon[i - 1], polygon[i]}, rect)) pieces.push_back(*piece);
    return pieces;
}

std::vector<QLineF> hatchOf(const QRectF& box, Slant slant)
{
    constexpr double kPeriod = 7;
    const double left = slant == Slant::Rising ? box.bottom() : box.top(); // where a line begins, and where it ends
    const double right = slant == Slant::Rising ? box.top() : box.bottom();
    std::vector<QLineF> lines;
    for (double x = box.left() - box.height(); x < box.right(); x += kPeriod)
        if (const auto line = clippedLine({x, left, x + box.height(), right}, box)) lines.push_back(*line);
    return lines;
}

} // namespace stagecraft::ui
