// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/waterfall_panel.h"

#include "traces/analysis/step_times.h"
#include "ui/bridge/text.h"
#include "ui/window/workbench.h"

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

using engine::Waterfall;
using engine::WaterfallPart;

constexpr double kMargin = 10;
constexpr double kGap = 14;      // between names, bars and values
constexpr double kLeastPoints = 6; // of the text
constexpr std::size_t kRows = engine::kWaterfallPartCount + 1;

QString nameOf(std::size_t row)
{
    return row < engine::kWaterfallPartCount ? toQt(waterfallPartText(static_cast<WaterfallPart>(row))) : WaterfallPanel::tr("step");
}

QString signedDuration(traces::TimeNs time)
{
    return (time < 0 ? QStringLiteral("−") : QString()) + toQt(traces::formatDuration(std::abs(time)));
}

QString valueText(const Waterfall& waterfall, std::size_t row)
{
    const traces::TimeNs time = row < waterfall.bars.size() ? waterfall.bars[row] : waterfall.total;
    QString text = signedDuration(time);
    if (row < waterfall.bars.size() && waterfall.total > 0)
        text += QStringLiteral("  %1 %").arg(100.0 * static_cast<double>(time) / static_cast<double>(waterfall.total), 0, 'f', 1);
    return text;
}

// The finished step that stands for a run's; of a trace that tells none, the last.
std::optional<traces::Step> toldStep(const traces::Trace& trace, const StepTable& steps)
{
    const std::vector<traces::StepTime> counted = traces::countedSteps(trace.steps(), trace.pauses());
    if (!counted.empty()) return traces::middleStep(counted).step;
    for (auto place = steps.all().rbegin(); place != steps.all().rend(); ++place)
        if (place->finished) return place->step;
    return std::nullopt;
}

template <class... Inputs>
WaterfallColumn columnOf(const QString& title, const Inputs&... inputs)
{
    const traces::Expected<Waterfall> waterfall = engine::waterfallOf(inputs...);
    if (!waterfall.ok()) return {title, std::nullopt, toQt(waterfall.error().message)};
    return {title, waterfall.value(), {}};
}

} // namespace

WaterfallPanel::WaterfallPanel(Workbench& workbench, QWidget* parent) : QWidget(parent), workbench_(workbench), theme_(Theme::of(ThemeKind::Light))
{
    setObjectName("waterfall");
    setAccessibleName(tr("Where the step's time went"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    connect(&workbench_.simulation(), &SimulationController::changed, this, &WaterfallPanel::refresh);
    connect(&workbench_.scene(), &TimelineScene::sourcesChanged, this, &WaterfallPanel::refresh);
}

// As high as its text, or what the panel has for each: it shares its place with the log, which takes little of it.
double WaterfallPanel::rowHeight() const
{
    const double natural = std::ceil(QFontMetricsF(font()).height()) + 5;
    return std::min(natural, (height() - kMargin) / static_cast<double>(kRows + 1));
}

QFont WaterfallPanel::rowFont() const
{
    QFont own = font();
    const double line = QFontMetricsF(own).height();
    if (rowHeight() < line + 1) own.setPointSizeF(std::max(kLeastPoints, own.pointSizeF() * (rowHeight() - 1) / line));
    return own;
}

QSize WaterfallPanel::minimumSizeHint() const { return {220, 90}; }
QSize WaterfallPanel::sizeHint() const { return {600, 90}; }

double WaterfallPanel::namesWidth() const
{
    const QFontMetricsF metrics(rowFont());
    double widest = 0;
    for (std::size_t row = 0; row < kRows; ++row) widest = std::max(widest, metrics.horizontalAdvance(nameOf(row)));
    return kMargin + widest + kGap;
}

void WaterfallPanel::setTheme(const Theme& theme)
{
    theme_ = theme;
    update();
}

void WaterfallPanel::refresh()
{
    outdated_ = true;
    if (isVisible()) start();
}

void WaterfallPanel::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    if (outdated_) start();
}

void WaterfallPanel::start()
{
    outdated_ = false;
    const Simulation& simulation = workbench_.simulation().simulation();
    const std::optional<int> simulated = workbench_.simulatedSource();
    const std::optional<int> other = workbench_.otherSource();
    const auto schedule = simulated && simulation.deadlock.empty() ? simulation.schedule : nullptr;
    std::shared_ptr<const traces::Trace> trace;
    std::optional<traces::Step> step;
    if (other && !workbench_.scene().sources()[static_cast<std::size_t>(*other)].growing) {
        trace = workbench_.other();
        step = toldStep(*trace, workbench_.scene().steps(*other));
    }
    const QString deadlock = simulated && !simulation.deadlock.empty() ? tr("a step that comes to no end has no time to split") : QString();
    const QString otherTitle = step ? tr("%1, step %2").arg(workbench_.otherWord()).arg(step->value) : QString();
    job_.start(
        [schedule, costs = simulation.costs, trace, step, deadlock, otherTitle](JobControl& control) {
            std::vector<WaterfallColumn> columns;
            if (!deadlock.isEmpty()) columns.push_back({WaterfallPanel::tr("simulated"), std::nullopt, deadlock});
            if (schedule) columns.push_back(columnOf(WaterfallPanel::tr("simulated"), *schedule, costs, std::optional<traces::TimeNs>(), control.stopToken()));
            if (trace && step) columns.push_back(columnOf(otherTitle, *trace, *step, control.stopToken()));
            return columns;
        },
        [this](std::vector<WaterfallColumn> columns) { take(std::move(columns)); });
}

void WaterfallPanel::take(std::vector<WaterfallColumn> columns)
{
    columns_ = std::move(columns);
    QStringList said;
    for (const WaterfallColumn& column : columns_) {
        said << column.title + QStringLiteral(": ");
        if (!column.waterfall) said.back() += column.problem;
        else
            for (std::size_t row = 0; row < kRows; ++row)
                said.back() += nameOf(row) + QLatin1Char(' ') + valueText(*column.waterfall, row) + (row + 1 < kRows ? QStringLiteral(", ") : QString());
    }
    setAccessibleDescription(said.join(QStringLiteral(". ")));
    update();
}

void WaterfallPanel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme_.base);
    if (columns_.empty()) {
        painter.setPen(theme_.mutedText);
        painter.drawText(rect().adjusted(12, 8, -12, -8), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                         job_.busy() ? tr("Being worked out…") : tr("There is no finished step to split."));
        return;
    }
    painter.setFont(rowFont());
    const bool any = std::any_of(columns_.begin(), columns_.end(), [](const WaterfallColumn& column) { return column.waterfall.has_value(); });
    double left = 0;
    const double width = (this->width() - namesWidth()) / static_cast<double>(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const double own = i == 0 ? namesWidth() + width : width;
        paintColumn(painter, columns_[i], QRectF(left, 0, own, height()), i == 0 && any);
        left += own;
    }
}

void WaterfallPanel::paintColumn(QPainter& painter, const WaterfallColumn& column, const QRectF& area, bool withNames) const
{
    const QFontMetricsF metrics(rowFont());
    const double barsLeft = area.left() + (withNames ? namesWidth() : kMargin);
    const auto textIn = [&](double x, std::size_t line, const QString& text, const QColor& colour, bool right = false) {
        painter.setPen(colour);
        const double y = kMargin / 2 + rowHeight() * static_cast<double>(line) + (rowHeight() + metrics.ascent() - metrics.descent()) / 2;
        painter.drawText(QPointF(right ? x - metrics.horizontalAdvance(text) : x, y), text);
    };
    textIn(barsLeft, 0, metrics.elidedText(column.title, Qt::ElideRight, area.right() - barsLeft), theme_.mutedText);
    if (withNames)
        for (std::size_t row = 0; row < kRows; ++row) textIn(area.left() + kMargin, row + 1, nameOf(row), theme_.text);
    if (!column.waterfall) {
        painter.setPen(theme_.mutedText);
        painter.drawText(QRectF(barsLeft, kMargin / 2 + rowHeight(), area.right() - barsLeft - kMargin, area.height()),
                         Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, column.problem);
        return;
    }
    const Waterfall& waterfall = *column.waterfall;
    double valueWidth = 0;
    for (std::size_t row = 0; row < kRows; ++row) valueWidth = std::max(valueWidth, metrics.horizontalAdvance(valueText(waterfall, row)));
    const double barsRight = area.right() - kMargin - valueWidth - kGap;
    traces::TimeNs end = std::max<traces::TimeNs>(waterfall.total, 1);
    traces::TimeNs sum = 0;
    for (const traces::TimeNs bar : waterfall.bars) end = std::max(end, sum += bar);
    const auto x = [&](traces::TimeNs time) {
        return barsLeft + std::max(0.0, barsRight - barsLeft) * static_cast<double>(std::max<traces::TimeNs>(time, 0)) / static_cast<double>(end);
    };
    const std::array<QColor, kRows> colours{theme_.classes[static_cast<std::size_t>(traces::PaintClass::Forward)],
                                            theme_.classes[static_cast<std::size_t>(traces::PaintClass::Optimizer)],
                                            theme_.classes[static_cast<std::size_t>(traces::PaintClass::Backward)],
                                            theme_.classes[static_cast<std::size_t>(traces::PaintClass::Transfer)],
                                            theme_.classes[static_cast<std::size_t>(traces::PaintClass::InputGrad)], theme_.mutedText};
    traces::TimeNs at = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
        const bool total = row == waterfall.bars.size();
        const traces::TimeNs from = total ? 0 : at;
        const traces::TimeNs to = total ? waterfall.total : at + waterfall.bars[row];
        const double around = std::min(3.0, rowHeight() / 6); // above and below a bar
        const double top = kMargin / 2 + rowHeight() * static_cast<double>(row + 1) + around;
        const QRectF bar(std::min(x(from), x(to)), top, std::max(std::abs(x(to) - x(from)), from == to ? 0.0 : 1.0), rowHeight() - 2 * around);
        if (to < from) { // what is won back: an outline
            painter.setPen(QPen(colours[row], 1.5));
            painter.setBrush(Qt::NoBrush);
        } else {
            painter.setPen(Qt::NoPen);
            painter.setBrush(colours[row]);
        }
        painter.drawRect(bar);
        if (row + 2 < kRows) { // the next one begins where this one ends
            painter.setPen(QPen(theme_.line, 1));
            painter.drawLine(QPointF(x(to), bar.bottom()), QPointF(x(to), bar.bottom() + 2 * around));
        }
        at = to;
        textIn(area.right() - kMargin, row + 1, valueText(waterfall, row), theme_.text, true);
    }
}

bool WaterfallPanel::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const auto row = static_cast<int>((help->y() - kMargin / 2) / rowHeight()) - 1;
        if (row < 0 || row >= static_cast<int>(engine::kWaterfallPartCount)) QToolTip::hideText();
        else QToolTip::showText(help->globalPos(), toQt(waterfallPartMeaning(static_cast<WaterfallPart>(row))), this);
        return true;
    }
    return QWidget::event(event);
}

void WaterfallPanel::mousePressEvent(QMouseEvent*) { emit pressed(); }

} // namespace stagecraft::ui
