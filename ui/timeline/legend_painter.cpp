// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/legend_painter.h"

#include "ui/timeline/clip.h"
#include "ui/timeline/lane_style.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <array>

namespace stagecraft::ui {
namespace {

constexpr double kSwatchWidth = 18;
constexpr double kSwatchHeight = 12;

// The classes that a scene has blocks of.
std::array<bool, traces::kPaintClassCount> classesOf(const TimelineScene& scene)
{
    std::array<bool, traces::kPaintClassCount> found{};
    for (int source = 0; source < scene.sourceCount(); ++source)
        for (const traces::Lane& lane : scene.trace(source).lanes()) {
            const traces::Occupancy total = lane.occupancyUntil(lane.lastEnd(), lane.size());
            for (std::size_t c = 0; c < total.size(); ++c) found[c] |= total[c] > 0;
        }
    return found;
}

} // namespace

void paintLegend(QPainter& painter, const TimelineScene& scene, const QRectF& box, const Theme& theme, const QFont& font,
                 const LegendOptions& options)
{
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    double x = box.left();
    const auto entry = [&](const QString& text, double swatchWidth, const auto& swatch) {
        const double width = swatchWidth + 6 + metrics.horizontalAdvance(text) + 20;
        if (x + width > box.right()) return;
        swatch(QRectF(x, box.center().y() - kSwatchHeight / 2, swatchWidth, kSwatchHeight));
        painter.setPen(theme.text);
        painter.drawText(QPointF(x + swatchWidth + 6, box.center().y() + (metrics.ascent() - metrics.descent()) / 2), text);
        x += width;
    };
    const auto block = [&](const QRectF& at, const QColor& colour) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawRoundedRect(at, 2, 2);
    };
    const auto found = classesOf(scene);
    for (std::size_t c = 0; c < found.size(); ++c)
        if (found[c])
            entry(QString::fromUtf8(paintClassName(static_cast<traces::PaintClass>(c))), kSwatchWidth,
                  [&](const QRectF& at) { block(at, theme.classes[c]); });
    entry(QStringLiteral("idle"), kSwatchWidth, [&](const QRectF& at) {
        painter.fillRect(at, theme.lane);
        painter.setPen(QPen(theme.hatch, kHatchPen));
        for (const QLineF& line : hatchOf(at)) painter.drawLine(line);
    });
    if (options.criticalPath)
        entry(QStringLiteral("critical path (dotted: waits)"), kSwatchWidth, [&](const QRectF& at) {
            painter.setPen(QPen(theme.path, 3, Qt::SolidLine, Qt::RoundCap));
            painter.drawLine(QPointF(at.left() + 2, at.bottom() - 2), QPointF(at.right() - 2, at.bottom() - 2));
        });
    int chunks = 1;
    for (int source = 0; source < scene.sourceCount(); ++source) chunks = std::max(chunks, scene.trace(source).info.chunks);
    chunks = std::min(chunks, LaneStyle::kShades);
    if (chunks > 1)
        entry(QStringLiteral("shade: chunk of the rank"), chunks * kSwatchHeight, [&](const QRectF& at) {
            for (int chunk = 0; chunk < chunks; ++chunk)
                block({at.left() + chunk * kSwatchHeight, at.top(), kSwatchHeight - 1, at.height()}, theme.block(traces::PaintClass::Forward, chunk));
        });
    bool twoDirections = false;
    for (int source = 0; source < scene.sourceCount(); ++source) twoDirections |= !scene.trace(source).info.upStageToRank.empty();
    if (twoDirections) // each counts its micro-batches from 0
        entry(QStringLiteral("shade: direction, from the first rank or from the last"), 2 * kSwatchHeight, [&](const QRectF& at) {
            for (int up = 0; up < 2; ++up)
                block({at.left() + up * kSwatchHeight, at.top(), kSwatchHeight - 1, at.height()}, theme.block(traces::PaintClass::Forward, up));
        });
    if (scene.arrangement() == Arrangement::Overlaid && scene.sourceCount() > 1)
        entry(QStringLiteral("simulated"), kSwatchWidth, [&](const QRectF& at) {
            painter.setPen(QPen(theme.ghost, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(at);
        });
}

} // namespace stagecraft::ui
