// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/stuck_painter.h"

#include "ui/timeline/clip.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr double kPadding = 7;
constexpr double kTrack = 11;  // between the lines of the circle
constexpr double kHead = 6;

class Circle {
public:
    Circle(QPainter& painter, const ArrowAreas& areas, const Theme& theme, const QFont& font)
        : painter_(painter), areas_(areas), theme_(theme), font_(font), metrics_(font)
    {
    }

    void paint(const TimelineScene& scene, const LaneLayout& layout, int source)
    {
        const std::vector<StuckRank>& stuck = scene.sources()[static_cast<std::size_t>(source)].stuck;
        if (stuck.empty() || scene.segments(source).empty()) return;
        const std::map<traces::Rank, QRectF> boxes = stuckBoxes(scene, layout, areas_, font_, source);
        double right = 0;
        for (const auto& [rank, box] : boxes) right = std::max(right, box.right());
        double track = std::min(right, areas_.lanes.right() - kTrack * static_cast<double>(boxes.size()) - kHead);
        for (const StuckRank& rank : stuck) {
            const auto from = boxes.find(rank.rank);
            const auto to = boxes.find(rank.waitsFor);
            if (from == boxes.end() || to == boxes.end()) continue;
            track += kTrack;
            if (rank.rank != rank.waitsFor) join(from->second, to->second, track);
        }
        for (const StuckRank& rank : stuck)
            if (const auto box = boxes.find(rank.rank); box != boxes.end()) label(box->second, rank.text);
    }

private:
    // Out of one box to the right, along the track, and into the other from there.
    void join(const QRectF& from, const QRectF& to, double track)
    {
        const double leave = from.center().y() - 3;
        const double enter = to.center().y() + 3;
        painter_.setPen(QPen(theme_.error, 2));
        for (const QLineF& line : {QLineF(from.right(), leave, track, leave), QLineF(track, leave, track, enter), QLineF(track, enter, to.right() + kHead, enter)})
            if (const auto seen = clippedLine(line, areas_.lanes)) painter_.drawLine(*seen);
        const QPolygonF head{QPointF(to.right() + 1, enter), QPointF(to.right() + 1 + kHead, enter - kHead / 2), QPointF(to.right() + 1 + kHead, enter + kHead / 2)};
        if (!areas_.lanes.contains(head.boundingRect())) return;
        painter_.setPen(Qt::NoPen);
        painter_.setBrush(theme_.error);
        painter_.drawPolygon(head);
    }

    void label(const QRectF& box, const QString& text)
    {
        const QRectF seen = box & areas_.lanes;
        if (seen.isEmpty()) return;
        painter_.setPen(QPen(theme_.error, 1.5));
        painter_.setBrush(theme_.base);
        painter_.drawRect(seen);
        const double top = box.center().y() + (metrics_.ascent() - metrics_.descent()) / 2;
        if (box.left() < areas_.lanes.left() || box.top() < areas_.lanes.top() || box.bottom() > areas_.lanes.bottom()) return;
        painter_.setFont(font_);
        painter_.setPen(theme_.error);
        painter_.drawText(QPointF(box.left() + kPadding, top), metrics_.elidedText(text, Qt::ElideRight, seen.width() - kPadding));
    }

    QPainter& painter_;
    const ArrowAreas& areas_;
    const Theme& theme_;
    QFont font_;
    QFontMetricsF metrics_;
};

} // namespace

std::map<traces::Rank, QRectF> stuckBoxes(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const QFont& font,
                                          int source)
{
    const QFontMetricsF metrics(font);
    const traces::Trace& trace = scene.trace(source);
    const traces::TimeNs shift = scene.segments(source).front().shift;
    const std::vector<StuckRank>& stuck = scene.sources()[static_cast<std::size_t>(source)].stuck;
    const double most = areas.lanes.right() - kTrack * static_cast<double>(stuck.size()) - 2 * kHead;
    std::map<traces::Rank, QRectF> boxes;
    for (const StuckRank& rank : stuck) {
        const auto lane = trace.findLane(rank.rank, traces::LaneKind::Compute);
        const Row* row = lane ? layout.rowOf(source, *lane) : nullptr;
        if (!row) continue;
        const double width = metrics.horizontalAdvance(rank.text) + 2 * kPadding;
        double left = areas.map.x(trace.lane(*lane).lastEnd() + shift) + 3;
        // what is scrolled out of sight stays there
        if (left >= areas.lanes.left() && left <= areas.lanes.right()) left = std::max(areas.lanes.left(), std::min(left, most - width));
        const double height = std::min(row->height, metrics.height() + 8);
        boxes[rank.rank] = QRectF(left, areas.lanes.top() + row->y - areas.scroll + (row->height - height) / 2, width, height);
    }
    return boxes;
}

void paintStuck(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const Theme& theme,
                const QFont& font)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    for (int source = 0; source < scene.sourceCount(); ++source) Circle(painter, areas, theme, font).paint(scene, layout, source);
    painter.restore();
}

} // namespace stagecraft::ui
