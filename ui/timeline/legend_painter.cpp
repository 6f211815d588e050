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
        for (const traces::Lane& lane : scene.trace(source).lanes())
            for (const traces::PaintClass paint : kPaintClassOrder) found[static_cast<std::size_t>(paint)] |= lane.has(paint);
    return found;
}

double lineHeight(const QFont& font) { return std::max(QFontMetricsF(font).height(), kSwatchHeight) + 6; }

// How many lines the entries take; without a painter they may take any number, else as many as the box holds.
int layOut(QPainter* on, const TimelineScene& scene, const QRectF& box, const Theme& theme, const QFont& font, const LegendOptions& options)
{
    const QFontMetricsF metrics(font);
    const int held = std::max(1, static_cast<int>(box.height() / lineHeight(font)));
    double x = box.left();
    int lines = 1;
    const auto entry = [&](const QString& text, double swatchWidth, const auto& swatch) {
        const double width = swatchWidth + 6 + metrics.horizontalAdvance(text) + 20;
        const double right = box.right() + 20; // the space behind an entry need not lie in the box
        if (box.left() + width > right) return;
        if (x + width > right) {
            if (on && lines == held) return;
            x = box.left();
            ++lines;
        }
        if (on) {
            const double middle = box.top() + box.height() * (lines - 0.5) / held;
            swatch(*on, QRectF(x, middle - kSwatchHeight / 2, swatchWidth, kSwatchHeight));
            on->setPen(theme.text);
            on->drawText(QPointF(x + swatchWidth + 6, middle + (metrics.ascent() - metrics.descent()) / 2), text);
        }
        x += width;
    };
    const auto block = [](QPainter& painter, const QRectF& at, const QColor& colour) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawRoundedRect(at, 2, 2);
    };
    const auto found = classesOf(scene);
    for (const traces::PaintClass paint : kPaintClassOrder)
        if (found[static_cast<std::size_t>(paint)])
            entry(QString::fromUtf8(paintClassName(paint)), kSwatchWidth, [&](QPainter& painter, const QRectF& at) {
                const QColor colour = theme.block(paint, 0);
                block(painter, at, colour);
                if (!isHatched(paint)) return;
                painter.setPen(QPen(theme.stroke(colour), kHatchPen));
                for (const QLineF& line : hatchOf(at.adjusted(1, 1, -1, -1), Slant::Falling)) painter.drawLine(line);
            });
    entry(QStringLiteral("idle"), kSwatchWidth, [&](QPainter& painter, const QRectF& at) {
        painter.fillRect(at, theme.lane);
        painter.setPen(QPen(theme.hatch, kHatchPen));
        for (const QLineF& line : hatchOf(at)) painter.drawLine(line);
    });
    if (options.criticalPath)
        entry(QStringLiteral("critical path (dotted: waits)"), kSwatchWidth, [&](QPainter& painter, const QRectF& at) {
            painter.setPen(QPen(theme.path, 3, Qt::SolidLine, Qt::RoundCap));
            painter.drawLine(QPointF(at.left() + 2, at.bottom() - 2), QPointF(at.right() - 2, at.bottom() - 2));
        });
    int chunks = 1;
    for (int source = 0; source < scene.sourceCount(); ++source) chunks = std::max(chunks, scene.trace(source).info.chunks);
    chunks = std::min(chunks, LaneStyle::kShades);
    if (chunks > 1)
        entry(QStringLiteral("shade: chunk of the rank"), chunks * kSwatchHeight, [&](QPainter& painter, const QRectF& at) {
            for (int chunk = 0; chunk < chunks; ++chunk)
                block(painter, {at.left() + chunk * kSwatchHeight, at.top(), kSwatchHeight - 1, at.height()}, theme.block(traces::PaintClass::Forward, chunk));
        });
    bool twoDirections = false;
    for (int source = 0; source < scene.sourceCount(); ++source) twoDirections |= !scene.trace(source).info.upStageToRank.empty();
    if (twoDirections) // each counts its micro-batches from 0
        entry(QStringLiteral("shade: direction, from the first rank or from the last"), 2 * kSwatchHeight, [&](QPainter& painter, const QRectF& at) {
            for (int up = 0; up < 2; ++up)
                block(painter, {at.left() + up * kSwatchHeight, at.top(), kSwatchHeight - 1, at.height()}, theme.block(traces::PaintClass::Forward, up));
        });
    if (scene.arrangement() == Arrangement::Overlaid && scene.sourceCount() > 1)
        entry(QStringLiteral("simulated"), kSwatchWidth, [&](QPainter& painter, const QRectF& at) {
            painter.setPen(QPen(theme.ghost, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(at);
        });
    return lines;
}

} // namespace

void paintLegend(QPainter& painter, const TimelineScene& scene, const QRectF& box, const Theme& theme, const QFont& font,
                 const LegendOptions& options)
{
    painter.setFont(font);
    layOut(&painter, scene, box, theme, font, options);
}

double legendHeight(const TimelineScene& scene, double width, const QFont& font, const LegendOptions& options)
{
    return lineHeight(font) * layOut(nullptr, scene, QRectF(0, 0, width, 0), Theme::of(ThemeKind::Light), font, options);
}

} // namespace stagecraft::ui
