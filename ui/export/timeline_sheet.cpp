// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/export/timeline_sheet.h"

#include "engine/plan/plan_json.h"
#include "traces/analysis/step_times.h"
#include "ui/bridge/text.h"
#include "ui/timeline/legend_painter.h"
#include "ui/timeline/time_ticks.h"

#include <QFontMetricsF>
#include <QGuiApplication>
#include <QPainter>

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft::ui {
namespace {

constexpr double kMargin = kSheetMargin;
constexpr double kTitleHeight = 56;
constexpr double kLegendHeight = 34;
constexpr double kFiguresHeight = 24;
constexpr double kLaneHeight = 34;
constexpr double kTableRow = 21;

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

} // namespace

TimelineSheet::TimelineSheet(const std::vector<TraceSource>& sources, const ExportOptions& options)
    : options_(options), font_(sheetFont()), painter_(options.theme, font_)
{
    scene_.analyseAtOnce();
    scene_.setArrangement(options.arrangement);
    scene_.setSources(sources);
    const double around = 2 * kMargin + kTitleHeight + painter_.rulerHeight() + kLegendHeight + figuresHeight();
    LayoutOptions layout;
    if (options.lanes) {
        layout.fitHeight = options.lanes->height;
    } else {
        layout.leastCompute = kLaneHeight;
        layout.fitHeight = std::max(0.0, options.height - around);
    }
    if (scene_.sourceCount() == 1) layout.headerHeight = 0; // the sheet's title says it
    layout_ = LaneLayout(scene_, layout, options.folded);
    const double lanes = options.lanes ? options.lanes->height : layout_.height();
    size_ = QSizeF(std::max(400, options.width), options.height > 0 ? options.height : std::ceil(around + lanes));
}

traces::TimeNs TimelineSheet::shift() const { return scene_.segments(scene_.reference()).front().shift; }

traces::Expected<void> TimelineSheet::checkRange() const
{
    const StepTable& steps = scene_.steps(scene_.reference());
    if (options_.step && !steps.find(*options_.step))
        return traces::Error{"there is no step " + std::to_string(options_.step->value) + "; the trace has the steps " +
                             std::to_string(steps.all().front().step.value) + " to " + std::to_string(steps.all().back().step.value)};
    if (!options_.from && !options_.to) return {};
    const TimeRange shown = range();
    if (shown.length <= 0) return traces::Error{"nothing lies between the times given; the first must be before the second, and within the trace"};
    return {};
}

TimeRange TimelineSheet::range() const
{
    if (options_.range) return {options_.range->begin, 0, static_cast<double>(options_.range->length())};
    traces::Interval all = scene_.extent();
    if (options_.step)
        if (const StepPlace* place = scene_.steps(scene_.reference()).find(*options_.step))
            all = {place->span.begin + shift(), place->span.end + shift()};
    // An end that is not given has the margin of a fitted view.
    const double margin = TimeAxis::kFitMargin * static_cast<double>(all.length());
    const double left = options_.from ? static_cast<double>(*options_.from) : -margin;
    const double right = options_.to ? static_cast<double>(*options_.to) : static_cast<double>(all.length()) + margin;
    return {all.begin, left, left < static_cast<double>(all.length()) ? right - left : 0};
}

const StepPlace* TimelineSheet::toldStep() const
{
    const StepTable& steps = scene_.steps(scene_.reference());
    if (options_.step) return steps.find(*options_.step);
    const TimeRange shown = range();
    std::vector<traces::StepTime> seen;
    for (const StepPlace& place : steps.all()) {
        const double begin = shown.at(place.span.begin + shift());
        const double end = shown.at(place.span.end + shift());
        if (place.finished && end > 0 && begin < shown.length)
            seen.push_back({place.step, place.span.length() - scene_.trace(scene_.reference()).pausedWithin(place.span)});
    }
    return seen.empty() ? nullptr : steps.find(traces::middleStep(std::move(seen)).step);
}

QString TimelineSheet::title() const
{
    if (!options_.title.isEmpty()) return options_.title;
    if (scene_.reference() < 0) return {};
    const traces::TraceInfo& info = scene_.trace(scene_.reference()).info;
    std::string own = info.title;
    if (!info.planJson.empty()) {
        const traces::Expected<engine::Plan> plan = engine::readPlan(info.planJson);
        if (plan.ok() && own.find(plan.value().name) == std::string::npos) own = plan.value().name + (own.empty() ? "" : ", ") + own;
    }
    return own.empty() ? QStringLiteral("Pipeline timeline") : QString::fromStdString(own);
}

QString TimelineSheet::subtitle() const
{
    QStringList parts;
    bool oneSchedule = true; // of several, each row of ranks has its own above it
    const traces::TraceInfo& info = scene_.trace(scene_.reference()).info;
    for (int source = 0; source < scene_.sourceCount(); ++source) {
        const auto label = traces::labelText(scene_.trace(source).info.label);
        parts << QString::fromUtf8(label.data(), static_cast<qsizetype>(label.size()));
        oneSchedule = oneSchedule && scene_.trace(source).info.schedule == info.schedule;
    }
    parts.removeDuplicates();
    QStringList words{parts.join(QStringLiteral(" and "))};
    if (oneSchedule && !info.schedule.empty()) words << QString::fromStdString(info.schedule);
    if (info.ranks > 0) words << counted(info.ranks, "rank");
    if (info.chunks > 1) words << counted(info.chunks, "chunk");
    if (info.microbatches > 0) words << counted(info.microbatches, "micro-batch");
    return words.join(QStringLiteral(" \u00b7 "));
}

QString TimelineSheet::figuresLine() const
{
    const int source = scene_.reference();
    const StepPlace* told = toldStep();
    if (!told) return QStringLiteral("no finished step in sight");
    const std::size_t count = scene_.steps(source).all().size();
    QString name = count == 1 ? QStringLiteral("step %1: ").arg(told->step.value) : QStringLiteral("step %1 of %2: ").arg(told->step.value).arg(count);
    if (!told->finished) return name + QStringLiteral("not finished");
    if (!options_.step && count > 1) name.prepend(QStringLiteral("median "));
    const traces::Expected<traces::StepFigures> worked = traces::stepFigures(scene_.trace(source), told->step);
    if (!worked.ok()) return {};
    const traces::StepFigures& figures = worked.value();
    const QString dot = QStringLiteral("   \u00b7   ");
    const auto percent = [](double fraction) { return QString::fromStdString(traces::formatPercent(fraction)); };
    double peak = 0;
    for (const traces::RankFigures& rank : figures.ranks) peak = std::max(peak, rank.peakActivations);
    return name + durationText(figures.makespan) + dot + QStringLiteral("bubble (1 \u2212 work/makespan) ") +
           percent(figures.bubbleMakespan) + dot + QStringLiteral("over ideal ") + percent(figures.bubbleOverIdeal) + dot +
           QStringLiteral("peak activations %1 %2").arg(peak, 0, 'g', 4).arg(peak == 1 ? QStringLiteral("micro-batch") : QStringLiteral("micro-batches"));
}

double TimelineSheet::figuresHeight() const
{
    return options_.table.empty() ? kFiguresHeight : kTableRow * static_cast<double>(options_.table.size()) + 8;
}

void TimelineSheet::paintTable(QPainter& painter, double top) const
{
    const Theme& theme = options_.theme;
    const auto columns = static_cast<double>(std::max<qsizetype>(options_.table.front().size(), 1));
    const double left = kMargin;
    const double room = size_.width() - 2 * kMargin;
    const double names = std::min(230.0, room / columns);
    const double width = columns > 1 ? std::min(260.0, (room - names) / (columns - 1)) : room;
    for (std::size_t r = 0; r < options_.table.size(); ++r) {
        const QStringList& row = options_.table[r];
        const double y = top + kTableRow * static_cast<double>(r);
        painter.setFont(r == 0 ? sized(font_, 12, QFont::DemiBold) : font_);
        for (qsizetype c = 0; c < row.size(); ++c) {
            const QRectF box = c == 0 ? QRectF(left, y, names - 8, kTableRow) : QRectF(left + names + width * static_cast<double>(c - 1), y, width - 8, kTableRow);
            painter.setPen(r == 0 || c > 0 ? theme.text : theme.mutedText);
            painter.drawText(box, (c == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter, QFontMetricsF(painter.font()).elidedText(row[c], Qt::ElideRight, box.width()));
        }
        painter.setPen(theme.line);
        painter.drawLine(QPointF(left, y + kTableRow), QPointF(left + names + width * (columns - 1) - 8, y + kTableRow));
    }
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

    const double below = kLegendHeight + figuresHeight() + kMargin;
    const double top = kMargin + kTitleHeight;
    TimelineView view;
    view.area = QRectF(kMargin, top, size_.width() - 2 * kMargin, size_.height() - top - below);
    view.surface = surface;
    view.deviceRatio = deviceRatio;
    view.range = range();
    view.foldMarks = false;
    view.selection = options_.selection;
    view.criticalPath = options_.criticalPath;
    if (options_.lanes) view.scroll = options_.lanes->scroll;
    painter_.paint(painter, scene_, layout_, view);

    const double legendLeft = kMargin + painter_.headerWidth();
    paintLegend(painter, scene_, QRectF(legendLeft, size_.height() - below, size_.width() - kMargin - legendLeft, kLegendHeight), theme, font_,
                {.criticalPath = options_.criticalPath});
    if (!options_.table.empty()) return paintTable(painter, size_.height() - kMargin - figuresHeight());
    painter.setFont(font_);
    painter.setPen(theme.mutedText);
    const QFontMetricsF metrics(font_);
    painter.drawText(QPointF(kMargin + painter_.headerWidth(), size_.height() - kMargin - kFiguresHeight + metrics.ascent() + 4),
                     metrics.elidedText(figuresLine(), Qt::ElideRight, room - painter_.headerWidth()));
}

} // namespace stagecraft::ui
