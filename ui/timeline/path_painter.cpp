// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/path_painter.h"

#include "ui/timeline/clip.h"

#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::PathKind;
using traces::PathLink;

constexpr double kLeastStep = 24; // pixels of a step, below which its path is a mere blot
constexpr double kLine = 3;
constexpr double kHalo = 5.5; // keeps the line apart from what it crosses
constexpr double kFoot = 3;   // above a block's lower edge

// Collects the lines of a path. What is narrower than a pixel is drawn together, as one line over the rows that it crosses.
class Tracer {
public:
    Tracer(const LaneLayout& layout, const ArrowAreas& areas, int source) : layout_(layout), areas_(areas), source_(source) {}

    void add(const PathLink& link, traces::TimeNs shift)
    {
        const double left = areas_.map.x(link.span.begin + shift);
        const double right = areas_.map.x(link.span.end + shift);
        const std::optional<double> from = footOf(link.kind == PathKind::Wait ? link.to : link.from);
        const std::optional<double> to = footOf(link.to);
        if (!from || !to) return;
        if (right - left < 1 && link.kind != PathKind::Wait) {
            gather(left, std::min(*from, *to), std::max(*from, *to));
            return;
        }
        (link.kind == PathKind::Wait ? waits_ : lines_).emplace_back(QPointF(left, *from), QPointF(right, *to));
        // free transfers take no time, and the path goes on in another row
        if (last_ && last_->x() >= left - 1.5 && last_->y() != *from) lines_.emplace_back(*last_, QPointF(left, *from));
        last_ = QPointF(right, *to);
    }

    void paint(QPainter& painter, const Theme& theme) const
    {
        const auto stroke = [&](const std::vector<QLineF>& lines, const QPen& pen) {
            painter.setPen(pen);
            for (const QLineF& line : lines)
                if (const auto seen = clippedLine(line, areas_.lanes)) painter.drawLine(*seen);
        };
        const QPen halo(theme.base, kHalo, Qt::SolidLine, Qt::RoundCap);
        stroke(lines_, halo);
        stroke(waits_, halo);
        stroke(lines_, QPen(theme.path, kLine, Qt::SolidLine, Qt::RoundCap));
        stroke(waits_, QPen(theme.path, kLine, Qt::DotLine, Qt::FlatCap));
    }

private:
    void gather(double x, double top, double bottom)
    {
        if (last_ && last_->x() >= x - 1.5) {
            top = std::min(top, last_->y());
            bottom = std::max(bottom, last_->y());
        }
        if (!lines_.empty() && lines_.back().x1() == lines_.back().x2() && x - lines_.back().x1() < 1) {
            top = std::min(top, lines_.back().y1());
            bottom = std::max(bottom, lines_.back().y2());
            lines_.back().setLine(lines_.back().x1(), top, lines_.back().x1(), bottom);
        } else {
            lines_.emplace_back(QPointF(x, top), QPointF(x, bottom));
        }
        last_ = QPointF(x, bottom);
    }

    // Near the lower edge of the row; of a folded one, of its rank's compute lane.
    [[nodiscard]] std::optional<double> footOf(traces::SliceRef slice) const
    {
        const Row* row = layout_.rowOf(source_, slice.lane);
        if (!row) return std::nullopt;
        return areas_.lanes.top() + row->bottom() - areas_.scroll - kFoot;
    }

    const LaneLayout& layout_;
    const ArrowAreas& areas_;
    int source_;
    std::vector<QLineF> lines_;
    std::vector<QLineF> waits_;
    std::optional<QPointF> last_;
};

} // namespace

void paintCriticalPath(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const TimeRange& range = areas.map.range();
    for (int source = 0; source < scene.sourceCount(); ++source) {
        if (scene.drawnAsOutline(source)) continue;
        for (const Segment& segment : scene.segments(source))
            for (const StepPlace& place : scene.steps(source).all()) {
                if (place.span.begin >= segment.span.end || place.span.end <= segment.span.begin) continue;
                if (place.span.begin + segment.shift > range.last() || place.span.end + segment.shift < range.first()) continue;
                if (areas.map.pixels(place.span.length()) < kLeastStep) continue;
                const std::optional<traces::CriticalPath>& path = scene.insight(source, place.step).path;
                if (!path) continue;
                Tracer tracer(layout, areas, source);
                auto link = std::lower_bound(path->links.begin(), path->links.end(), range.first() - segment.shift,
                                             [](const PathLink& known, traces::TimeNs time) { return known.span.end < time; });
                for (; link != path->links.end() && link->span.begin + segment.shift <= range.last(); ++link) tracer.add(*link, segment.shift);
                tracer.paint(painter, theme);
            }
    }
    painter.restore();
}

} // namespace stagecraft::ui
