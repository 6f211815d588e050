// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/sweep_plot.h"

#include "ui/bridge/text.h"
#include "ui/plots/tickers.h"

#include <QKeyEvent>
#include <QVBoxLayout>
#include <qcustomplot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace stagecraft::ui {

using engine::Sweep;
using engine::SweepFigure;
using engine::SweepPoint;
using engine::SweepSeries;

namespace {

// Okabe and Ito's colours, which people with any kind of colour blindness tell apart; darker on light ground, lighter on dark.
constexpr std::array<std::pair<unsigned, unsigned>, 7> kColours{{{0x0072b2, 0x56b4e9},
                                                                 {0xc04f00, 0xf28e4b},
                                                                 {0x00795a, 0x35c9a0},
                                                                 {0x9a4580, 0xe29bc4},
                                                                 {0x8a6100, 0xf2be4a},
                                                                 {0x4b4f58, 0xc8cdd6},
                                                                 {0x5a3fb0, 0xa99af2}}};
constexpr std::array kMarks{QCPScatterStyle::ssDisc,    QCPScatterStyle::ssSquare,           QCPScatterStyle::ssDiamond,
                            QCPScatterStyle::ssTriangle, QCPScatterStyle::ssTriangleInverted, QCPScatterStyle::ssStar};
constexpr std::size_t kMostMarked = 60;  // points of a line beyond which marks would be one band
constexpr std::size_t kMostLabels = 12;  // values that stand below an axis one by one

// Labels by what the value is.
class FigureTicker : public QCPAxisTicker {
public:
    explicit FigureTicker(SweepFigure figure) : figure_(figure) {}

protected:
    QString getTickLabel(double tick, const QLocale&, QChar, int) override { return toQt(engine::figureText(figure_, tick)); }
    int getSubTickCount(double) override { return 0; }

private:
    SweepFigure figure_;
};

class QuantityTicker : public QCPAxisTicker {
public:
    explicit QuantityTicker(engine::SweepQuantity quantity) : quantity_(quantity) {}

protected:
    double getTickStep(const QCPRange& range) override
    {
        const double step = QCPAxisTicker::getTickStep(range);
        return infoOf(quantity_).unit == engine::SweepUnit::Count ? std::max(1.0, std::round(step)) : step;
    }
    QString getTickLabel(double tick, const QLocale&, QChar, int) override
    {
        return tick < 0 ? QString() : toQt(engine::sweepValueText(quantity_, tick));
    }
    int getSubTickCount(double) override { return 0; }

private:
    engine::SweepQuantity quantity_;
};

QSharedPointer<QCPAxisTicker> valueTicker(SweepFigure figure)
{
    if (engine::infoOf(figure).unit == engine::FigureUnit::Size) return QSharedPointer<QCPAxisTicker>(new ByteTicker);
    return QSharedPointer<QCPAxisTicker>(new FigureTicker(figure));
}

void setUpQuantityAxis(QCPAxis& axis, const Sweep& sweep)
{
    const std::vector<double>& values = sweep.axis.values;
    axis.setLabel(toQt(infoOf(sweep.axis.quantity).title));
    if (values.empty()) return;
    const double low = values.front();
    const double high = values.back();
    if (!sweep.axis.geometric || low <= 0) {
        axis.setScaleType(QCPAxis::stLinear);
        axis.setTicker(QSharedPointer<QCPAxisTicker>(new QuantityTicker(sweep.axis.quantity)));
        const double room = high > low ? (high - low) * 0.04 : std::max(1.0, std::abs(high) * 0.1);
        axis.setRange(low - room, high + room);
        return;
    }
    axis.setScaleType(QCPAxis::stLogarithmic);
    const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
    const std::size_t every = (values.size() + kMostLabels - 1) / kMostLabels;
    for (std::size_t i = 0; i < values.size(); i += every) ticker->addTick(values[i], toQt(engine::sweepValueText(sweep.axis.quantity, values[i])));
    axis.setTicker(ticker);
    const double room = high > low ? std::pow(high / low, 0.04) : 1.1;
    axis.setRange(low / room, high * room);
}

QString figureTitle(const Sweep& sweep, SweepFigure figure)
{
    const QString title = toQt(engine::infoOf(figure).title);
    return figure == SweepFigure::Throughput ? QStringLiteral("%1 in %2").arg(title, toQt(sweep.throughputUnit)) : title;
}

QString valueText(const Sweep& sweep, SweepFigure figure, double value)
{
    QString text = toQt(engine::figureText(figure, value));
    return figure == SweepFigure::Throughput ? text + ' ' + toQt(sweep.throughputUnit) : text;
}

} // namespace

std::vector<SweepFigure> mainFigures(const Sweep& sweep)
{
    const bool bytes = std::ranges::any_of(sweep.series, [](const SweepSeries& series) {
        return std::ranges::any_of(series.points, [](const SweepPoint& point) { return point.peakMemory > 0; });
    });
    return {SweepFigure::BubbleMakespan, SweepFigure::StepTime, bytes ? SweepFigure::PeakMemory : SweepFigure::PeakActivations,
            sweep.scaling == engine::Scaling::None ? SweepFigure::Throughput : SweepFigure::Speedup};
}

SweepPlot::SweepPlot(QWidget* parent) : QWidget(parent), plot_(new QCustomPlot(this)), theme_(Theme::of(ThemeKind::Light))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Curves of the sweep"));
    setFocusPolicy(Qt::StrongFocus);
    plot_->setFocusPolicy(Qt::NoFocus);
    plot_->setFocusProxy(this);
    plot_->setMouseTracking(true);
    plot_->setAutoAddPlottableToLegend(false);
    connect(plot_, &QCustomPlot::mouseMove, this, [this](QMouseEvent* event) { pointAt(event->pos()); });
    connect(plot_, &QCustomPlot::mousePress, this, [this] { setFocus(Qt::MouseFocusReason); });
    build();
}

QSize SweepPlot::sizeHint() const { return {640, 420}; }

QSize SweepPlot::minimumSizeHint() const { return {320, 220}; }

void SweepPlot::setTheme(const Theme& theme)
{
    theme_ = theme;
    build();
}

void SweepPlot::setSweep(Sweep sweep)
{
    sweep_ = std::move(sweep);
    place_.reset();
    build();
    emit pointTold({});
}

void SweepPlot::setFigures(std::vector<SweepFigure> figures)
{
    figures_ = std::move(figures);
    build();
}

void SweepPlot::setTitle(const QString& title)
{
    title_ = title;
    build();
}

QColor SweepPlot::colour(std::size_t series) const
{
    const auto& [light, dark] = kColours[series % kColours.size()];
    return QColor::fromRgb(theme_.kind == ThemeKind::Light ? light : dark);
}

// Everything anew: a plot has few objects, and its figures change their number.
void SweepPlot::build()
{
    plot_->clearItems();
    plot_->clearPlottables();
    plot_->plotLayout()->clear();
    panels_.clear();
    tracers_.clear();
    anyForm_ = false;
    int row = 0;
    if (!title_.isEmpty()) {
        auto* title = new QCPTextElement(plot_, title_, QFont(font().family(), 11, QFont::DemiBold));
        title->setTextColor(theme_.text);
        title->setMargins(QMargins(8, 8, 8, 0));
        plot_->plotLayout()->addElement(row++, 0, title);
    }
    auto* grid = new QCPLayoutGrid;
    plot_->plotLayout()->addElement(row++, 0, grid);
    const int columns = figures_.size() > 1 ? 2 : 1;
    for (std::size_t i = 0; i < figures_.size(); ++i) {
        auto* rect = new QCPAxisRect(plot_);
        rect->setMinimumMargins(QMargins(8, 10, 14, 4));
        grid->addElement(static_cast<int>(i) / columns, static_cast<int>(i) % columns, rect);
        panels_.push_back(rect);
    }
    applyTheme(*plot_, theme_);
    for (std::size_t i = 0; i < figures_.size(); ++i) addPanel(*panels_[i], figures_[i]);
    addLegend();
    goTo(place_);
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void SweepPlot::addPanel(QCPAxisRect& rect, SweepFigure figure)
{
    QCPAxis& across = *rect.axis(QCPAxis::atBottom);
    QCPAxis& up = *rect.axis(QCPAxis::atLeft);
    for (const QCPAxis::AxisType side : {QCPAxis::atTop, QCPAxis::atRight}) rect.axis(side)->setVisible(false);
    up.setLabel(figureTitle(sweep_, figure));
    up.setTicker(valueTicker(figure));
    setUpQuantityAxis(across, sweep_);

    double most = 0;
    for (std::size_t s = 0; s < sweep_.series.size(); ++s) {
        const SweepSeries& series = sweep_.series[s];
        QVector<double> values;
        QVector<double> simulated;
        QVector<double> formed;
        bool formedAny = false;
        for (const SweepPoint& point : series.points) {
            values << point.value;
            simulated << engine::simulatedValue(point, figure);
            const std::optional<double> form = engine::formValue(point, figure);
            formed << form.value_or(qQNaN()); // the line breaks there
            formedAny = formedAny || form;
            most = std::max({most, simulated.back(), form.value_or(0)});
        }
        if (formedAny) {
            QCPGraph* form = plot_->addGraph(&across, &up);
            form->setPen(QPen(colour(s), 1.6, Qt::DashLine));
            form->setData(values, formed, true);
            form->setName(QStringLiteral("formula"));
            anyForm_ = true;
        }
        QCPGraph* graph = plot_->addGraph(&across, &up);
        graph->setName(toQt(series.title));
        graph->setPen(QPen(colour(s), 1.8));
        if (formedAny) { // the formula lies on what it foretells: let both be seen
            QColor pale = colour(s);
            pale.setAlpha(150);
            graph->setPen(QPen(pale, 1.4));
        }
        if (series.points.size() <= kMostMarked)
            graph->setScatterStyle(QCPScatterStyle(kMarks[s % kMarks.size()], colour(s), colour(s), 6.5));
        graph->setData(values, simulated, true);

        const bool telling = figure == SweepFigure::StepTime || figure == SweepFigure::Throughput;
        if (series.bestSize && telling && across.range().contains(series.bestSize->value)) {
            auto* line = new QCPItemStraightLine(plot_);
            line->setClipAxisRect(&rect);
            line->setPen(QPen(colour(s), 1, Qt::DotLine));
            for (QCPItemPosition* end : {line->point1, line->point2}) {
                end->setAxisRect(&rect);
                end->setAxes(&across, &up);
                end->setTypeX(QCPItemPosition::ptPlotCoords);
                end->setTypeY(QCPItemPosition::ptAxisRectRatio);
            }
            line->point1->setCoords(series.bestSize->value, 0);
            line->point2->setCoords(series.bestSize->value, 1);
            auto* text = new QCPItemText(plot_);
            text->setClipAxisRect(&rect);
            text->position->setAxisRect(&rect);
            text->position->setAxes(&across, &up);
            text->position->setTypeX(QCPItemPosition::ptPlotCoords);
            text->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
            // where the curves are not: a step is long at both ends, a throughput small
            const double step = 0.07 * static_cast<double>(s);
            text->position->setCoords(series.bestSize->value, figure == SweepFigure::StepTime ? 0.02 + step : 0.9 - step);
            text->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
            text->setText(QStringLiteral(" b* = %1").arg(series.bestSize->value, 0, 'g', 3));
            text->setColor(colour(s));
        }
    }
    up.setRange(0, most > 0 ? most * 1.07 : 1);
    auto* tracer = new QCPItemTracer(plot_);
    tracer->setClipAxisRect(&rect);
    tracer->position->setAxisRect(&rect);
    tracer->position->setAxes(&across, &up);
    tracer->position->setType(QCPItemPosition::ptPlotCoords);
    tracer->setStyle(QCPItemTracer::tsCircle);
    tracer->setSize(13);
    tracer->setPen(QPen(theme_.accent, 2));
    tracer->setBrush(Qt::NoBrush);
    tracer->setVisible(false);
    tracers_.push_back(tracer);
}

// One line of entries below the panels: every series once, and what a dashed line is.
void SweepPlot::addLegend()
{
    if (sweep_.series.empty()) return;
    auto* legend = new QCPLegend;
    legend->setFillOrder(QCPLegend::foColumnsFirst);
    legend->setWrap(4);
    legend->setBorderPen(Qt::NoPen);
    legend->setBrush(Qt::NoBrush);
    legend->setTextColor(theme_.text);
    legend->setIconSize(26, 12);
    legend->setMargins(QMargins(12, 0, 12, 6));
    plot_->plotLayout()->addElement(plot_->plotLayout()->rowCount(), 0, legend);
    plot_->plotLayout()->setRowStretchFactor(plot_->plotLayout()->rowCount() - 1, 0.001);
    const auto first = panels_.empty() ? QList<QCPGraph*>() : panels_.front()->graphs();
    for (QCPGraph* graph : first)
        if (graph->name() != QStringLiteral("formula")) graph->addToLegend(legend);
    if (!anyForm_ || panels_.empty()) return;
    QCPGraph* dashed = plot_->addGraph(panels_.front()->axis(QCPAxis::atBottom), panels_.front()->axis(QCPAxis::atLeft));
    dashed->setPen(QPen(theme_.mutedText, 1.6, Qt::DashLine));
    dashed->setName(sweep_.scaling == engine::Scaling::Strong ? tr("by formula, Amdahl's law")
                    : sweep_.scaling == engine::Scaling::Weak ? tr("by formula, Gustafson's law")
                                                              : tr("by formula"));
    dashed->addToLegend(legend);
}

QString SweepPlot::tellOf(const Place& place) const
{
    const SweepSeries& series = sweep_.series[place.series];
    const SweepPoint& point = series.points[place.point];
    QStringList parts;
    for (const SweepFigure figure : figures_) {
        QString part = QStringLiteral("%1 %2").arg(toQt(engine::infoOf(figure).title), valueText(sweep_, figure, engine::simulatedValue(point, figure)));
        const std::optional<double> form = engine::formValue(point, figure);
        const QString text = toQt(engine::formText(point, figure));
        if (form) part += tr(", by formula %1").arg(valueText(sweep_, figure, *form));
        if (form && !text.isEmpty() && figures_.size() == 1) part += QStringLiteral(" = ") + text;
        parts << part;
    }
    return QStringLiteral("%1, %2 %3: %4")
        .arg(toQt(series.title), toQt(infoOf(sweep_.axis.quantity).title), toQt(engine::sweepValueText(sweep_.axis.quantity, point.value)),
             parts.join(QStringLiteral("; ")));
}

void SweepPlot::goTo(const std::optional<Place>& place)
{
    place_ = place;
    for (std::size_t i = 0; i < tracers_.size(); ++i) {
        tracers_[i]->setVisible(place.has_value());
        if (!place) continue;
        const SweepPoint& point = sweep_.series[place->series].points[place->point];
        tracers_[i]->position->setCoords(point.value, engine::simulatedValue(point, figures_[i]));
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
    const QString text = place ? tellOf(*place) : QString();
    setAccessibleDescription(text);
    emit pointTold(text);
}

// The nearest point within a finger's breadth, in whichever panel the mouse is.
void SweepPlot::pointAt(const QPoint& position)
{
    constexpr double kReach = 18;
    std::optional<Place> nearest;
    double least = kReach;
    for (std::size_t i = 0; i < panels_.size(); ++i) {
        if (!panels_[i]->rect().contains(position)) continue;
        const QCPAxis& across = *panels_[i]->axis(QCPAxis::atBottom);
        const QCPAxis& up = *panels_[i]->axis(QCPAxis::atLeft);
        for (std::size_t s = 0; s < sweep_.series.size(); ++s)
            for (std::size_t k = 0; k < sweep_.series[s].points.size(); ++k) {
                const SweepPoint& point = sweep_.series[s].points[k];
                const double away = std::hypot(across.coordToPixel(point.value) - position.x(),
                                               up.coordToPixel(engine::simulatedValue(point, figures_[i])) - position.y());
                if (away < least) {
                    least = away;
                    nearest = Place{s, k};
                }
            }
    }
    if (nearest) goTo(nearest);
}

void SweepPlot::keyPressEvent(QKeyEvent* event)
{
    std::vector<std::size_t> filled;
    for (std::size_t s = 0; s < sweep_.series.size(); ++s)
        if (!sweep_.series[s].points.empty()) filled.push_back(s);
    if (filled.empty()) return QWidget::keyPressEvent(event);
    Place place = place_.value_or(Place{filled.front(), 0});
    const bool first = !place_; // the first key shows where one is
    const std::size_t last = sweep_.series[place.series].points.size() - 1;
    const auto here = static_cast<std::size_t>(std::ranges::find(filled, place.series) - filled.begin());
    const auto toSeries = [&](std::size_t index) {
        const double value = sweep_.series[place.series].points[place.point].value;
        place.series = filled[index];
        const std::vector<SweepPoint>& points = sweep_.series[place.series].points;
        const auto nearest = std::ranges::min_element(points, {}, [&](const SweepPoint& point) { return std::abs(point.value - value); });
        place.point = static_cast<std::size_t>(nearest - points.begin());
    };
    switch (event->key()) {
    case Qt::Key_Right: place.point = first ? 0 : std::min(place.point + 1, last); break;
    case Qt::Key_Left: place.point = place.point == 0 ? 0 : place.point - 1; break;
    case Qt::Key_Home: place.point = 0; break;
    case Qt::Key_End: place.point = last; break;
    case Qt::Key_Down: if (!first) toSeries((here + 1) % filled.size()); break;
    case Qt::Key_Up: if (!first) toSeries((here + filled.size() - 1) % filled.size()); break;
    default: return QWidget::keyPressEvent(event);
    }
    goTo(place);
}

// Who comes by Tab sees where the keys are.
void SweepPlot::focusInEvent(QFocusEvent* event)
{
    QWidget::focusInEvent(event);
    if (place_ || (event->reason() != Qt::TabFocusReason && event->reason() != Qt::BacktabFocusReason)) return;
    const auto filled = std::ranges::find_if(sweep_.series, [](const SweepSeries& series) { return !series.points.empty(); });
    if (filled != sweep_.series.end()) goTo(Place{static_cast<std::size_t>(filled - sweep_.series.begin()), 0});
}

void SweepPlot::focusOutEvent(QFocusEvent* event)
{
    QWidget::focusOutEvent(event);
    if (event->reason() != Qt::PopupFocusReason && event->reason() != Qt::ActiveWindowFocusReason) goTo(std::nullopt);
}

} // namespace stagecraft::ui
