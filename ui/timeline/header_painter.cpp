// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/header_painter.h"

#include "traces/analysis/replicas.h"
#include "traces/analysis/stream_lanes.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <optional>

namespace stagecraft::ui {
namespace {

constexpr double kMarkSize = 16;
constexpr double kTextLeft = 24;

QFont bold(const QFont& font)
{
    QFont heavy = font;
    heavy.setWeight(QFont::DemiBold);
    return heavy;
}

QFont smaller(const QFont& font)
{
    QFont small = font;
    if (small.pixelSize() > 0) small.setPixelSize(std::max(8, small.pixelSize() - 2));
    else small.setPointSizeF(std::max(6.0, small.pointSizeF() - 1.5));
    return small;
}

double baselineIn(const QFont& font, double top, double height)
{
    const QFontMetricsF metrics(font);
    return top + (height + metrics.ascent() - metrics.descent()) / 2;
}

void paintFoldMark(QPainter& painter, const QRectF& mark, bool folded, const QColor& colour)
{
    const QPointF c = mark.center();
    const QPolygonF triangle = folded ? QPolygonF{{c.x() - 2, c.y() - 4}, {c.x() + 3, c.y()}, {c.x() - 2, c.y() + 4}}
                                      : QPolygonF{{c.x() - 4, c.y() - 2}, {c.x() + 4, c.y() - 2}, {c.x(), c.y() + 3}};
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(triangle);
}

void paintBand(QPainter& painter, const QRectF& band, const QRectF& area, const QString& label, const Theme& theme, const QFont& font)
{
    const QRectF seen = band & area;
    if (seen.isEmpty()) return;
    painter.fillRect(seen, theme.window);
    painter.fillRect(QRectF(seen.left(), seen.bottom() - 1, seen.width(), 1), theme.line);
    const QFont heavy = bold(font);
    const QFontMetricsF metrics(heavy);
    if (seen.height() < metrics.height()) return;
    painter.setFont(heavy);
    painter.setPen(theme.text);
    painter.drawText(QPointF(seen.left() + 8, baselineIn(heavy, seen.bottom() - band.height(), band.height())),
                     metrics.elidedText(label, Qt::ElideRight, seen.width() - 16));
}

void paintGroup(QPainter& painter, const traces::Trace& trace, const RankGroup& group, double firstHeight,
                const HeaderAreas& areas, const Theme& theme, const QFont& font)
{
    const QRectF box(areas.column.left(), areas.column.top() + group.y - areas.scroll, areas.column.width(), firstHeight);
    const double groupBottom = areas.column.top() + group.bottom() - areas.scroll;
    // The name stays in sight while any lane of its rank is.
    const QRectF stuck = box.translated(0, std::clamp(areas.column.top() - box.top(), 0.0, std::max(0.0, groupBottom - box.bottom())));
    if (stuck.top() + 10 > areas.column.bottom() || stuck.bottom() - 10 < areas.column.top()) return;
    if (group.foldable && areas.foldMarks) {
        const QRectF mark = foldMark(stuck);
        if (areas.column.contains(mark)) paintFoldMark(painter, mark, group.folded, theme.mutedText);
    }

    const QFont heavy = bold(font);
    const QFont small = smaller(font);
    const QFontMetricsF metrics(heavy);
    const QFontMetricsF smallMetrics(small);
    const QString name = QStringLiteral("Rank %1").arg(group.rank.value);
    const QString stages = placeText(trace, group.rank);
    const double left = stuck.left() + kTextLeft;
    const double room = stuck.width() - kTextLeft - 8;
    const bool twoLines = !stages.isEmpty() && stuck.height() >= metrics.height() + smallMetrics.height();
    const double top = twoLines ? stuck.center().y() - (metrics.height() + smallMetrics.height()) / 2 : stuck.top();
    const double baseline = twoLines ? top + metrics.ascent() : baselineIn(heavy, stuck.top(), stuck.height());
    if (baseline - metrics.ascent() < areas.column.top() - 1 || baseline + metrics.descent() > areas.column.bottom() + 1) return;
    painter.setFont(heavy);
    painter.setPen(theme.text);
    painter.drawText(QPointF(left, baseline), metrics.elidedText(name, Qt::ElideRight, room));
    if (stages.isEmpty()) return;
    painter.setFont(small);
    painter.setPen(theme.mutedText);
    if (twoLines) {
        const double second = top + metrics.height() + smallMetrics.ascent();
        if (second + smallMetrics.descent() <= areas.column.bottom() + 1)
            painter.drawText(QPointF(left, second), smallMetrics.elidedText(stages, Qt::ElideRight, room));
        return;
    }
    const double used = metrics.horizontalAdvance(name) + 8;
    if (smallMetrics.horizontalAdvance(stages) <= room - used)
        painter.drawText(QPointF(stuck.right() - 8 - smallMetrics.horizontalAdvance(stages), baseline), stages);
}

// The other rows of a rank that have room for it: those of transfers are too thin.
void paintRowName(QPainter& painter, const traces::LaneInfo& info, const Row& row, const HeaderAreas& areas, const Theme& theme, const QFont& font)
{
    const QFontMetricsF metrics(font);
    const QRectF box(areas.column.left(), areas.column.top() + row.y - areas.scroll, areas.column.width(), row.height);
    if (box.height() < metrics.ascent() + 1) return;
    const double baseline = baselineIn(font, box.top(), box.height());
    if (baseline - metrics.ascent() < areas.column.top() - 1 || baseline + metrics.descent() > areas.column.bottom() + 1) return;
    painter.setFont(font);
    painter.setPen(theme.mutedText);
    painter.drawText(QPointF(box.left() + kTextLeft, baseline), metrics.elidedText(rowName(info), Qt::ElideMiddle, box.width() - kTextLeft - 8));
}

} // namespace

double headerWidthFor(const QFont& font) { return std::ceil(QFontMetricsF(font).horizontalAdvance(QStringLiteral("Rank 00  stages 0, 0")) + kTextLeft); }

QRectF foldMark(const QRectF& header)
{
    return {header.left() + 4, header.top() + (std::min(header.height(), 64.0) - kMarkSize) / 2, kMarkSize, kMarkSize};
}

QString placeText(const traces::Trace& trace, traces::Rank rank)
{
    const QString stages = stagesText(trace.info, rank);
    for (const traces::Lane& lane : trace.lanes()) {
        if (lane.info().rank != rank) continue;
        if (const std::optional<int> gpu = gpuOf(lane.info()))
            return (stages.isEmpty() ? QString() : stages + QStringLiteral(" · ")) + QStringLiteral("GPU %1").arg(*gpu);
    }
    return stages;
}

QString stagesText(const traces::TraceInfo& info, traces::Rank rank)
{
    const traces::Rank own = traces::rankInReplica(info, rank);
    QStringList stages;
    for (std::size_t stage = 0; stage < info.stageToRank.size(); ++stage)
        if (info.stageToRank[stage] == own) stages << QString::number(stage);
    for (std::size_t stage = 0; stage < info.upStageToRank.size(); ++stage)
        if (info.upStageToRank[stage] == own) stages << QStringLiteral("u%1").arg(stage);
    if (stages.isEmpty()) return {};
    const QString replica = traces::replicasOf(info) == 1 ? QString() : QStringLiteral("replica %1, ").arg(traces::replicaOf(info, rank));
    return replica + (stages.size() == 1 ? QStringLiteral("stage ") : QStringLiteral("stages ")) + stages.join(QStringLiteral(", "));
}

// Under the header of its rank, which tells rank and GPU: "replica 1 · rank 0 sends" of rank 4 is "sends", "GPU 0 stream 7, of no action" is
// "stream 7, of no action".
QString rowName(const traces::LaneInfo& info)
{
    const QString name = QString::fromStdString(info.name).simplified();
    if (const std::optional<int> gpu = gpuOf(info)) {
        const QString prefix = QStringLiteral("GPU %1 ").arg(*gpu);
        if (name.startsWith(prefix) && name.size() > prefix.size()) return name.mid(prefix.size());
    }
    const int inReplica = name.startsWith(QLatin1String("replica ")) ? static_cast<int>(name.indexOf(QLatin1String(" rank "))) : -1;
    const QString rank = inReplica < 0 ? QStringLiteral("rank %1 ").arg(info.rank.value) : name.left(name.indexOf(QLatin1Char(' '), inReplica + 6) + 1);
    if (!name.startsWith(rank) || rank.isEmpty()) return name;
    return name[rank.size()] == '(' ? QStringLiteral("R") + name.mid(1) : name.mid(rank.size());
}

void paintHeaders(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const HeaderAreas& areas,
                  const Theme& theme, const QFont& font)
{
    painter.fillRect(areas.column, theme.base);
    for (const RankGroup& group : layout.groups()) {
        const Row* first = layout.rowAt(group.y);
        if (group.bottom() < areas.scroll || group.y - areas.scroll > areas.column.height() || !first) continue;
        paintGroup(painter, scene.trace(group.source), group, first->height, areas, theme, font);
        // Where the rank's name is held in sight, no other one lies under it.
        const double named = group.y < areas.scroll ? areas.scroll + first->height : group.y + first->height;
        for (const Row* row = first + 1; row != layout.rows().data() + layout.rows().size() && row->y < group.bottom(); ++row)
            if (row->y >= named) paintRowName(painter, scene.trace(group.source).lane(row->lane).info(), *row, areas, theme, smaller(font));
    }
    painter.fillRect(QRectF(areas.column.right() - 1, areas.column.top(), 1, areas.column.height()), theme.line);

    const auto band = [&](const Row& row, double y) {
        QString label = sourceLabel(scene.sources()[static_cast<std::size_t>(row.source)]);
        if (scene.arrangement() == Arrangement::Overlaid)
            for (int other = 0; other < scene.sourceCount(); ++other)
                if (other != row.source)
                    label += QStringLiteral("   \u00b7   outlines: ") + sourceLabel(scene.sources()[static_cast<std::size_t>(other)]);
        paintBand(painter, QRectF(areas.whole.left(), areas.whole.top() + y, areas.whole.width(), row.height), areas.whole, label,
                  theme, font);
    };
    const LaneLayout::Sticky sticky = layout.stickyHeader(areas.scroll);
    for (const Row& row : layout.rows())
        if (row.kind == Row::Kind::SourceHeader && &row != sticky.header) band(row, row.y - areas.scroll);
    if (sticky.header) band(*sticky.header, sticky.y);
}

} // namespace stagecraft::ui
