// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/memory_plot.h"

#include "ui/plots/tickers.h"
#include "ui/theme/contrast.h"

#include <QEvent>
#include <QMouseEvent>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <qcustomplot.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stagecraft::ui {
namespace {

using traces::MemoryClass;
using traces::Rank;
using traces::TimeNs;

constexpr int kMostLegendRanks = 8;
constexpr std::size_t kMostPredictionSegments = 64;
constexpr double kHeadRoom = 1.5; // of the peak: room for its text and the legend

// From the ground up: what stays at the bottom, what comes and goes on top.
constexpr std::array<MemoryClass, 5> kStack{MemoryClass::Weights, MemoryClass::Gradients, MemoryClass::Optimizer,
                                            MemoryClass::Other, MemoryClass::Activations};

unsigned bit(MemoryClass memory) { return 1U << static_cast<unsigned>(memory); }

std::vector<Rank> ranksOf(const traces::Trace& trace)
{
    std::vector<Rank> ranks;
    for (const traces::MemorySeries& series : trace.memory()) ranks.push_back(series.rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

QString sizeText(traces::Bytes bytes) { return QString::fromStdString(traces::formatSize(bytes)); }

} // namespace

MemoryPlot::MemoryPlot(TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), theme_(Theme::of(ThemeKind::Light)), plot_(new QCustomPlot(this)),
      timeTicker_(new TimeTicker), cursor_(new QCPItemStraightLine(plot_)), peak_(new QCPItemTracer(plot_)),
      peakText_(new QCPItemText(plot_)), note_(new QCPItemText(plot_))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Memory of each rank over time"));
    plot_->setAccessibleName(accessibleName());
    plot_->setMouseTracking(true);
    plot_->installEventFilter(this);
    plot_->axisRect()->setAutoMargins(QCP::msNone);
    plot_->axisRect()->setMargins(QMargins(130, 8, 16, 8));
    plot_->xAxis->setTicker(timeTicker_);
    plot_->xAxis->setTickLabels(false);
    plot_->xAxis->setTickLength(0);
    const QSharedPointer<ByteTicker> bytes(new ByteTicker);
    bytes->setTickCount(4);
    plot_->yAxis->setTicker(bytes);
    plot_->yAxis->setTickLength(0, 4);
    plot_->legend->setVisible(true);
    plot_->legend->setFillOrder(QCPLegend::foColumnsFirst, false);
    plot_->legend->setMargins(QMargins(6, 2, 6, 2));
    plot_->legend->setIconSize(14, 10);
    plot_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignTop | Qt::AlignRight);
    plot_->axisRect()->insetLayout()->setMargins(QMargins(4, 2, 4, 2));

    cursor_->setVisible(false);
    peak_->setVisible(false);
    peak_->setStyle(QCPItemTracer::tsCircle);
    peak_->setSize(7);
    peakText_->setVisible(false);
    peakText_->setPadding(QMargins(6, 1, 6, 4));
    note_->position->setType(QCPItemPosition::ptAxisRectRatio);
    note_->position->setCoords(0.5, 0.5);
    note_->setText(tr("No memory is recorded in this trace"));
    for (QCPAbstractItem* item : {static_cast<QCPAbstractItem*>(cursor_), static_cast<QCPAbstractItem*>(peak_), static_cast<QCPAbstractItem*>(peakText_)})
        item->setLayer(QStringLiteral("overlay"));

    connect(&scene_, &TimelineScene::sourcesChanged, this, &MemoryPlot::rebuild);
    connect(&scene_, &TimelineScene::dataChanged, this, &MemoryPlot::addData);
    connect(&scene_.axis(), &TimeAxis::rangeChanged, this, &MemoryPlot::showRange);
    setTheme(theme_);
}

QSize MemoryPlot::sizeHint() const { return {900, 150}; }

void MemoryPlot::setTheme(const Theme& theme)
{
    theme_ = theme;
    applyTheme(*plot_, theme_);
    QColor line = theme_.cursor;
    line.setAlphaF(0.55F);
    cursor_->setPen(QPen(line, 1));
    peak_->setPen(QPen(theme_.text, 1.4));
    peak_->setBrush(theme_.base);
    peakText_->setColor(theme_.text);
    note_->setColor(theme_.mutedText);
    rebuild();
}

void MemoryPlot::setMargins(double left, double right)
{
    plot_->axisRect()->setMargins(QMargins(static_cast<int>(std::lround(left)), 8, static_cast<int>(std::lround(right)), 8));
    showRange();
}

void MemoryPlot::setRank(std::optional<Rank> rank)
{
    if (rank == rank_) return;
    rank_ = rank;
    rebuild();
}

const traces::Trace* MemoryPlot::trace() const
{
    return scene_.reference() < 0 || scene_.segments(scene_.reference()).empty() ? nullptr : &scene_.trace(scene_.reference());
}

TimeNs MemoryPlot::shift() const { return scene_.segments(scene_.reference()).front().shift; }

void MemoryPlot::rebuild()
{
    plot_->clearGraphs();
    curves_.clear();
    prediction_ = nullptr;
    const traces::Trace* source = trace();
    const std::vector<Rank> ranks = source ? ranksOf(*source) : std::vector<Rank>{};
    const bool stacked = rank_ && std::find(ranks.begin(), ranks.end(), *rank_) != ranks.end();
    if (stacked) {
        unsigned classes = 0;
        for (const MemoryClass memory : kStack) {
            if (!source->memorySeries(*rank_, memory)) continue;
            classes |= bit(memory);
            const auto text = traces::memoryClassText(memory);
            const QColor colour = theme_.memoryClasses[static_cast<std::size_t>(memory)];
            QCPGraph* graph = plot_->addGraph();
            graph->setPen(QPen(mixed(colour, theme_.text, 0.15), 1));
            QColor fill = colour;
            fill.setAlphaF(0.75F);
            graph->setBrush(fill);
            if (!curves_.empty()) graph->setChannelFillGraph(curves_.back().graph);
            curves_.push_back({MemoryCurve(*rank_, classes), graph, QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()))});
        }
        if (scene_.sourceCount() > 1) {
            prediction_ = plot_->addGraph();
            prediction_->setPen(QPen(theme_.text, 1.4, Qt::DashLine));
            prediction_->setLineStyle(QCPGraph::lsStepLeft);
            prediction_->setName(tr("simulated"));
        }
    } else {
        for (const Rank rank : ranks) {
            QCPGraph* graph = plot_->addGraph();
            graph->setPen(QPen(theme_.rank(rank.value, static_cast<int>(ranks.size())), 1.6));
            curves_.push_back({MemoryCurve(rank, MemoryCurve::kAllClasses), graph, tr("rank %1").arg(rank.value)});
        }
    }
    const auto count = static_cast<int>(curves_.size());
    for (int i = 0; i < count; ++i) {
        Curve& curve = curves_[static_cast<std::size_t>(i)];
        curve.graph->setLineStyle(QCPGraph::lsStepLeft);
        curve.graph->setName(curve.name);
        // Of many ranks only the first, some between and the last are named: the colours are in order.
        const int every = (count + kMostLegendRanks - 1) / kMostLegendRanks;
        if (i % std::max(1, every) != 0 && i != count - 1) curve.graph->removeFromLegend();
    }
    plot_->legend->setWrap(kMostLegendRanks + 2);
    plot_->legend->setVisible(!curves_.empty());
    addData();
}

void MemoryPlot::addReferenceData(Curve& curve)
{
    const std::size_t kept = curve.sum.update(*trace());
    const std::vector<MemoryPoint>& points = curve.sum.points();
    const auto data = curve.graph->data();
    // The last value holds until the end of the trace; that point goes whenever the curve grows.
    if (kept == 0) data->clear();
    else data->removeAfter(static_cast<double>(points[kept - 1].time + shift()) + 0.5);
    for (std::size_t i = kept; i < points.size(); ++i)
        data->add(QCPGraphData(static_cast<double>(points[i].time + shift()), static_cast<double>(points[i].bytes)));
    const TimeNs end = trace()->extent().end;
    if (!points.empty() && points.back().time < end)
        data->add(QCPGraphData(static_cast<double>(end + shift()), static_cast<double>(points.back().bytes)));
}

void MemoryPlot::addPrediction()
{
    const int other = scene_.reference() == 0 ? 1 : 0;
    const std::vector<Segment>& segments = scene_.segments(other);
    QVector<double> keys;
    QVector<double> values;
    if (segments.size() <= kMostPredictionSegments) {
        MemoryCurve total(*rank_, MemoryCurve::kAllClasses);
        total.update(scene_.trace(other));
        for (const Segment& segment : segments) {
            const auto add = [&](TimeNs t, traces::Bytes bytes) {
                keys << static_cast<double>(t + segment.shift);
                values << static_cast<double>(bytes);
            };
            add(segment.span.begin, total.at(segment.span.begin));
            for (const MemoryPoint& point : total.points())
                if (point.time > segment.span.begin && point.time < segment.span.end) add(point.time, point.bytes);
        }
    }
    prediction_->setData(keys, values);
}

void MemoryPlot::addData()
{
    const traces::Trace* source = trace();
    const std::size_t ranks = source ? ranksOf(*source).size() : 0;
    // A rank whose first bytes came only now needs a curve of its own.
    if (!rank_ && ranks != curves_.size() && source) {
        if (ranks > 0 && curves_.size() < ranks) {
            rebuild();
            return;
        }
    }
    double highest = 0;
    for (Curve& curve : curves_) {
        addReferenceData(curve);
        highest = std::max(highest, static_cast<double>(curve.sum.highest().bytes));
    }
    if (prediction_) addPrediction();
    note_->setVisible(curves_.empty() && !scene_.empty());
    plot_->yAxis->setVisible(!curves_.empty());
    plot_->yAxis->setRange(0, highest > 0 ? highest * kHeadRoom : 1);
    markPeak();
    showHover();
    showRange();
}

void MemoryPlot::markPeak()
{
    const Curve* top = nullptr;
    for (const Curve& curve : curves_)
        if (!top || curve.sum.highest().bytes > top->sum.highest().bytes) top = &curve;
    const bool seen = top && top->sum.highest().bytes > 0;
    peak_->setVisible(seen);
    peakText_->setVisible(seen);
    if (!seen) return;
    const MemoryPoint point = top->sum.highest();
    const double key = static_cast<double>(point.time + shift());
    peak_->position->setCoords(key, static_cast<double>(point.bytes));
    peakText_->position->setCoords(key, static_cast<double>(point.bytes));
    peakText_->setText(tr("peak %1 on rank %2").arg(sizeText(point.bytes)).arg(top->sum.rank().value));
}

void MemoryPlot::showRange()
{
    const TimeRange& range = scene_.axis().range();
    const double lower = static_cast<double>(range.origin) + range.begin;
    plot_->xAxis->setRange(lower, lower + range.length);
    // The text keeps to the side where it has room.
    const double place = (peak_->position->key() - lower) / range.length;
    peakText_->setPositionAlignment((place < 0.8 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignBottom);
    const bool seen = place >= 0 && place <= 1 && !curves_.empty() && peak_->position->value() > 0;
    peak_->setVisible(seen);
    peakText_->setVisible(seen);
    replot();
}

void MemoryPlot::showHover()
{
    cursor_->setVisible(hoverTime_.has_value() && !curves_.empty());
    if (cursor_->visible()) {
        const double key = static_cast<double>(*hoverTime_);
        cursor_->point1->setCoords(key, 0);
        cursor_->point2->setCoords(key, 1);
    }
    for (std::size_t i = 0; i < curves_.size(); ++i) {
        Curve& curve = curves_[i];
        QString name = curve.name;
        if (cursor_->visible()) {
            const TimeNs t = *hoverTime_ - shift();
            traces::Bytes bytes = curve.sum.at(t);
            if (rank_ && i > 0) bytes -= curves_[i - 1].sum.at(t); // curves of a stack hold the sum below them too
            name += QStringLiteral("  ") + sizeText(bytes);
        }
        curve.graph->setName(name);
    }
}

void MemoryPlot::setHoverTime(std::optional<TimeNs> shown)
{
    if (shown == hoverTime_) return;
    hoverTime_ = shown;
    showHover();
    replot();
}

void MemoryPlot::replot()
{
    timeTicker_->setWidth(plot_->axisRect()->width());
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void MemoryPlot::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    replot();
}

bool MemoryPlot::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != plot_) return QWidget::eventFilter(watched, event);
    const auto timeAt = [this](double x) { return static_cast<TimeNs>(std::llround(plot_->xAxis->pixelToCoord(x))); };
    const auto inside = [this](QPointF pos) { return plot_->axisRect()->rect().contains(pos.toPoint()) && !scene_.empty(); };
    switch (event->type()) {
    case QEvent::Wheel: {
        auto* wheel = static_cast<QWheelEvent*>(event);
        if (wheel->angleDelta().y() != 0)
            scene_.axis().zoom(std::pow(0.8, wheel->angleDelta().y() / 120.0), timeAt(wheel->position().x()));
        return true;
    }
    case QEvent::MouseButtonPress: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        panning_ = mouse->button() == Qt::LeftButton && inside(mouse->position());
        panX_ = mouse->position().x();
        return true;
    }
    case QEvent::MouseMove: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        const double x = mouse->position().x();
        if (panning_) {
            scene_.axis().pan((panX_ - x) * plot_->xAxis->range().size() / std::max(1, plot_->axisRect()->width()));
            panX_ = x;
            emit movedByUser();
        }
        const auto time = inside(mouse->position()) ? std::optional(timeAt(x)) : std::nullopt;
        setHoverTime(time);
        emit hoverTimeChanged(time);
        return true;
    }
    case QEvent::MouseButtonRelease: panning_ = false; return true;
    case QEvent::MouseButtonDblClick: scene_.axis().fitAll(); return true;
    case QEvent::Leave:
        setHoverTime(std::nullopt);
        emit hoverTimeChanged(std::nullopt);
        return false;
    default: return QWidget::eventFilter(watched, event);
    }
}

} // namespace stagecraft::ui
