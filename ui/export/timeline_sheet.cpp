// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/export/timeline_sheet.h"

#include "ui/timeline/clip.h"
#include "ui/timeline/time_ticks.h"

#include <QFontMetricsF>
#include <QGuiApplication>
#include <QPainter>

#include <algorithm>
#include <array>

namespace stagecraft::ui {
namespace {

constexpr double kMargin = 24;
constexpr double kTitleHeight = 56;
constexpr double kLegendHeight = 34;
constexpr double kFiguresHeight = 24;
constexpr double kLaneHeight = 34;

QFont sheetFont()
{
    QFont font = QGuiApplication::font();
    font.setPixelSize(12);
    return font;
}

QFont sized(QFont font, int pixels, QFont::Weight weight = QFont::Normal)
{
    font.setPixelSize(pixels);
    font.setWeight(weight);
    return font;
}

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

TimelineSheet::TimelineSheet(const std::vector<TraceSource>& sources, const ExportOptions& options)
    : options_(options), font_(sheetFont()), painter_(options.theme, font_)
{
    scene_.setArrangement(options.arrangement);
    scene_.setSources(sources);
    const double around = 2 * kMargin + kTitleHeight + painter_.rulerHeight() + kLegendHeight + kFiguresHeight;
    LayoutOptions layout;
    layout.leastCompute = kLaneHeight;
    layout.fitHeight = std::max(0.0, options.height - around);
    layout_ = LaneLayout(scene_, layout, options.folded);
    size_ = QSizeF(std::max(400, options.width), options.height > 0 ? options.height : std::ceil(around + layout_.height()));
}

QString TimelineSheet::title() const
{
    if (!options_.title.isEmpty()) return options_.title;
    if (scene_.reference() < 0) return {};
    const std::string& own = scene_.trace(scene_.reference()).info.title;
    return own.empty() ? QStringLiteral("Pipeline timeline") : QString::fromStdString(own);
}

QString TimelineSheet::subtitle() const
{
    QStringList parts;
    const traces::TraceInfo& info = scene_.trace(scene_.reference()).info;
    for (int source = 0; source < scene_.sourceCount(); ++source) {
        const auto label = traces::labelText(scene_.trace(source).info.label);
        parts << QString::fromUtf8(label.data(), static_cast<qsizetype>(label.size()));
    }
    QStringList words{parts.join(QStringLiteral(" and "))};
    if (!info.schedule.empty()) words << QString::fromStdString(info.schedule);
    if (info.ranks > 0) words << QStringLiteral("%1 ranks").arg(info.ranks);
    if (info.chunks > 1) words << QStringLiteral("%1 chunks").arg(info.chunks);
    if (info.microbatches > 0) words << QStringLiteral("%1 micro-batches").arg(info.microbatches);
    return words.join(QStringLiteral(" \u00b7 "));
}

QString TimelineSheet::figuresLine() const
{
    const int source = scene_.reference();
    const auto& steps = scene_.steps(source).all();
    const traces::TimeNs shift = scene_.segments(source).front().shift;
    // The first step that is seen at all.
    const auto seen = std::find_if(steps.begin(), steps.end(), [&](const StepPlace& place) {
        return !options_.range || place.span.end + shift > options_.range->begin;
    });
    if (seen == steps.end()) return {};
    const auto& figures = scene_.figures(source, seen->step);
    if (!figures) return {};
    const QString dot = QStringLiteral("   \u00b7   ");
    const auto percent = [](double fraction) { return QString::fromStdString(traces::formatPercent(fraction)); };
    double peak = 0;
    for (const traces::RankFigures& rank : figures->ranks) peak = std::max(peak, rank.peakActivations);
    return QStringLiteral("step %1 of %2: ").arg(seen->step.value).arg(steps.size()) + durationText(figures->makespan) + dot +
           QStringLiteral("bubble (1 \u2212 work/makespan) ") + percent(figures->bubbleMakespan) + dot +
           QStringLiteral("over ideal ") + percent(figures->bubbleOverIdeal) + dot +
           QStringLiteral("peak activations %1 micro-batches").arg(peak, 0, 'g', 4);
}

void TimelineSheet::paintLegend(QPainter& painter, double y) const
{
    const Theme& theme = options_.theme;
    painter.setFont(font_);
    const QFontMetricsF metrics(font_);
    double x = kMargin + painter_.headerWidth();
    const double right = size_.width() - kMargin;
    const auto entry = [&](const QString& text, const auto& swatch) {
        const double width = 18 + 6 + metrics.horizontalAdvance(text) + 20;
        if (x + width > right) return;
        swatch(QRectF(x, y + (kLegendHeight - 12) / 2, 18, 12));
        painter.setPen(theme.text);
        painter.drawText(QPointF(x + 24, y + (kLegendHeight + metrics.ascent() - metrics.descent()) / 2), text);
        x += width;
    };
    const auto found = classesOf(scene_);
    for (std::size_t c = 0; c < found.size(); ++c) {
        if (!found[c]) continue;
        entry(QString::fromUtf8(paintClassName(static_cast<traces::PaintClass>(c))), [&](const QRectF& box) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme.classes[c]);
            painter.drawRoundedRect(box, 2, 2);
        });
    }
    entry(QStringLiteral("idle"), [&](const QRectF& box) {
        painter.fillRect(box, theme.lane);
        painter.setPen(QPen(theme.hatch, 1.4));
        for (double at = box.left() - box.height(); at < box.right(); at += 7)
            if (const auto line = clippedLine({at, box.bottom(), at + box.height(), box.top()}, box)) painter.drawLine(*line);
    });
    if (scene_.arrangement() == Arrangement::Overlaid && scene_.sourceCount() > 1)
        entry(QStringLiteral("simulated"), [&](const QRectF& box) {
            painter.setPen(QPen(theme.ghost, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box);
        });
}

void TimelineSheet::paint(QPainter& painter, Surface surface, double deviceRatio)
{
    const Theme& theme = options_.theme;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(QRectF(QPointF(0, 0), size_), theme.base);

    painter.setFont(sized(font_, 19, QFont::DemiBold));
    painter.setPen(theme.text);
    const double room = size_.width() - 2 * kMargin;
    painter.drawText(QPointF(kMargin, kMargin + 18), QFontMetricsF(painter.font()).elidedText(title(), Qt::ElideRight, room));
    painter.setFont(sized(font_, 13));
    painter.setPen(theme.mutedText);
    painter.drawText(QPointF(kMargin, kMargin + 39), QFontMetricsF(painter.font()).elidedText(subtitle(), Qt::ElideRight, room));

    const double below = kLegendHeight + kFiguresHeight + kMargin;
    const double top = kMargin + kTitleHeight;
    TimelineView view;
    view.area = QRectF(kMargin, top, size_.width() - 2 * kMargin, size_.height() - top - below);
    view.surface = surface;
    view.deviceRatio = deviceRatio;
    if (options_.range)
        view.range = {options_.range->begin, 0, static_cast<double>(options_.range->length())};
    else
        view.range = scene_.axis().range();
    painter_.paint(painter, scene_, layout_, view);

    paintLegend(painter, size_.height() - below);
    painter.setFont(font_);
    painter.setPen(theme.mutedText);
    const QFontMetricsF metrics(font_);
    painter.drawText(QPointF(kMargin + painter_.headerWidth(), size_.height() - kMargin - kFiguresHeight + metrics.ascent() + 4),
                     metrics.elidedText(figuresLine(), Qt::ElideRight, room - painter_.headerWidth()));
}

} // namespace stagecraft::ui
