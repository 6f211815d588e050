// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/ruler_painter.h"

#include "ui/theme/contrast.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr double kLeastStepPixels = 14;   // narrower steps get no chip of their own
constexpr double kLeastPhasePixels = 60;  // narrower steps show no phases

QFont smallFont(const QFont& font)
{
    QFont small = font;
    if (font.pixelSize() > 0) small.setPixelSize(std::max(8, font.pixelSize() - 1));
    else small.setPointSizeF(std::max(6.0, font.pointSizeF() - 1));
    return small;
}

// The first text that fits is drawn in the middle of the box; none where none does.
void drawFitting(QPainter& painter, const QRectF& box, std::initializer_list<QString> texts)
{
    const QFontMetricsF metrics(painter.font());
    for (const QString& text : texts) {
        const double width = metrics.horizontalAdvance(text);
        if (width + 8 > box.width()) continue;
        painter.drawText(QPointF(box.center().x() - width / 2, box.center().y() + (metrics.ascent() - metrics.descent()) / 2), text);
        return;
    }
}

// A run still works at it, or broke off within it.
QString unfinishedText(const TimelineScene& scene, int source)
{
    const bool growing = scene.sources()[static_cast<std::size_t>(source)].growing;
    return growing ? QStringLiteral(" \u00b7 running") : QStringLiteral(" \u00b7 not finished");
}

struct RulerRows {
    QRectF steps;
    QRectF phases;
    QRectF ticks;
};

RulerRows rowsOf(const QRectF& rect)
{
    const double steps = std::floor(rect.height() * 0.34);
    const double phases = std::floor(rect.height() * 0.3);
    return {QRectF(rect.left(), rect.top(), rect.width(), steps), QRectF(rect.left(), rect.top() + steps, rect.width(), phases),
            QRectF(rect.left(), rect.top() + steps + phases, rect.width(), rect.height() - steps - phases)};
}

} // namespace

QString rulerText(const TimelineScene& scene, traces::TimeNs shown)
{
    const int source = scene.reference();
    if (source < 0 || scene.segments(source).empty()) return {};
    const traces::TimeNs t = shown - scene.segments(source).front().shift;
    for (const StepPlace& place : scene.steps(source).all()) {
        if (t < place.span.begin || t >= place.span.end) continue;
        const QString row = QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>");
        QString html = QStringLiteral("<b>step %1%2</b><table>").arg(place.step.value).arg(place.finished ? QString() : unfinishedText(scene, source));
        html += row.arg(QStringLiteral("length"), durationText(place.span.length() - scene.trace(source).pausedWithin(place.span)));
        const auto& figures = place.finished ? scene.figures(source, place.step) : std::nullopt;
        if (figures && figures->steady.length() > 0) {
            html += row.arg(QStringLiteral("fill"), durationText(figures->steady.begin - figures->span.begin));
            html += row.arg(QStringLiteral("steady"), durationText(figures->steady.length()));
            html += row.arg(QStringLiteral("drain"), durationText(figures->span.end - figures->steady.end));
        }
        if (figures) html += row.arg(QStringLiteral("bubble"), QString::fromStdString(traces::formatPercent(figures->bubbleMakespan)));
        else if (scene.calculating(source, place.step)) html += row.arg(QStringLiteral("bubble"), QStringLiteral("calculating\u2026"));
        return html + QStringLiteral("</table>");
    }
    return {};
}

double rulerHeightFor(const QFont& font) { return std::round(QFontMetricsF(font).height() * 3.7); }

void paintRuler(QPainter& painter, const TimelineScene& scene, const TimeMapping& map, const TimeTicks& ticks,
                const QRectF& rect, const Theme& theme, const QFont& font)
{
    painter.fillRect(rect, theme.base);
    const RulerRows rows = rowsOf(rect);
    painter.setFont(smallFont(font));

    const int source = scene.reference();
    if (source >= 0 && !scene.segments(source).empty()) {
        const traces::TimeNs shift = scene.segments(source).front().shift;
        const auto box = [&](const QRectF& row, traces::Interval span) {
            const double left = std::max(rect.left(), map.x(span.begin + shift));
            const double right = std::min(rect.right(), map.x(span.end + shift));
            return QRectF(left, row.top() + 1, right - left, row.height() - 2);
        };
        const bool several = scene.steps(source).all().size() > 1;
        for (const StepPlace& place : scene.steps(source).all()) {
            const double pixels = map.pixels(place.span.length());
            const QRectF chip = box(rows.steps, place.span);
            if (pixels < kLeastStepPixels || chip.width() <= 1) continue;
            painter.fillRect(chip.adjusted(0, 0, -1, 0), theme.lane);
            painter.setPen(theme.text);
            const QString name = QStringLiteral("step %1").arg(place.step.value);
            const QString length = durationText(place.span.length() - scene.trace(source).pausedWithin(place.span));
            const QString dot = QStringLiteral(" \u00b7 ");
            if (!place.finished) {
                drawFitting(painter, chip, {name + unfinishedText(scene, source), name, QString::number(place.step.value)});
                continue;
            }
            if (pixels < kLeastPhasePixels) {
                drawFitting(painter, chip, {name, QString::number(place.step.value)});
                continue;
            }
            const auto& figures = scene.figures(source, place.step);
            if (!figures) {
                drawFitting(painter, chip, {name + dot + length, name, QString::number(place.step.value)});
                continue;
            }
            const QString bubble = QString::fromStdString(traces::formatPercent(figures->bubbleMakespan));
            drawFitting(painter, chip,
                        {name + dot + length + dot + QStringLiteral("bubble ") + bubble, name + dot + length,
                         several ? name : length, QString::number(place.step.value)});
            if (figures->steady.length() <= 0) continue;
            const auto phase = [&](traces::Interval span, const QColor& colour, const QString& text) {
                const QRectF band = box(rows.phases, span);
                if (band.width() <= 1) return;
                painter.fillRect(band.adjusted(0, 0, -1, 0), colour);
                painter.setPen(theme.text);
                drawFitting(painter, band, {text});
            };
            phase({figures->span.begin, figures->steady.begin}, theme.filling, QStringLiteral("fill"));
            phase(figures->steady, theme.steady, QStringLiteral("steady"));
            phase({figures->steady.end, figures->span.end}, theme.draining, QStringLiteral("drain"));
        }
    }

    const QFontMetricsF metrics(painter.font());
    const double baseline = rows.ticks.center().y() + (metrics.ascent() - metrics.descent()) / 2;
    double free = rect.left(); // labels must not touch each other
    if (!ticks.base.isEmpty()) {
        painter.setPen(theme.text);
        painter.drawText(QPointF(rect.left() + 4, baseline), ticks.base);
        free = rect.left() + 4 + metrics.horizontalAdvance(ticks.base) + 10;
    }
    for (const TimeTick& tick : ticks.ticks) {
        const double x = map.x(tick.time);
        if (x < rect.left() || x > rect.right() - 1) continue;
        painter.fillRect(QRectF(std::floor(x), rows.ticks.bottom() - 5, 1, 5), theme.line);
        const double width = metrics.horizontalAdvance(tick.label);
        if (x + 4 < free || x + 4 + width > rect.right()) continue;
        painter.setPen(theme.mutedText);
        painter.drawText(QPointF(x + 4, baseline), tick.label);
        free = x + 4 + width + 6;
    }
    painter.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), theme.line);
}

} // namespace stagecraft::ui
