// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/memory_plot.h"

#include "traces/analysis/gpu_memory.h"
#include "ui/plots/in_flight_curve.h"
#include "ui/plots/memory_curve.h"
#include "ui/plots/tickers.h"
#include "ui/theme/contrast.h"

#include <QVBoxLayout>
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
constexpr int kLegendMargin = 30; // its frame, and its distance from the axes
constexpr std::size_t kMostCountedSlices = 2'000'000; // more take longer than one waits, and more memory than their lanes
constexpr double kHeadRoom = 1.7; // of the peak: room for its two lines of text and the legend
constexpr double kNearLimit = 2.5; // times the highest curve

// From the ground up: what stays at the bottom, what comes and goes on top.
constexpr std::array<MemoryClass, traces::kMemoryClassCount> kStack{
    MemoryClass::Weights, MemoryClass::Versions, MemoryClass::Gradients, MemoryClass::Optimizer,
    MemoryClass::Other,   MemoryClass::Buffers,  MemoryClass::Recompute, MemoryClass::Activations};

unsigned bit(MemoryClass memory) { return 1U << static_cast<unsigned>(memory); }

// Whether its blocks say what they hold: those of an imported trace may be mere kernels.
bool holdsActivations(const traces::Lane& lane)
{
    const auto forward = static_cast<std::size_t>(traces::PaintClass::Forward);
    const auto overlap = static_cast<std::size_t>(traces::PaintClass::Overlap);
    const traces::Occupancy total = lane.occupancyUntil(lane.lastEnd(), lane.size());
    return !lane.empty() && (total[forward] > 0 || total[overlap] > 0);
}

std::vector<Rank> ranksOf(const traces::Trace& trace)
{
    std::vector<Rank> ranks;
    for (const traces::MemorySeries& series : trace.memory()) ranks.push_back(series.rank);
    if (ranks.empty() && trace.sliceCount() <= kMostCountedSlices) // no bytes: those that compute
        for (const traces::Lane& lane : trace.lanes())
            if (lane.info().kind == traces::LaneKind::Compute && holdsActivations(lane)) ranks.push_back(lane.info().rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

QString sizeText(traces::Bytes bytes) { return QString::fromStdString(traces::formatSize(bytes)); }

} // namespace

MemoryPlot::MemoryPlot(TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), theme_(Theme::of(ThemeKind::Light)), plot_(new QCustomPlot(this)),
      timeTicker_(new TimeTicker), cursor_(new QCPItemStraightLine(plot_)), peak_(new QCPItemTracer(plot_)),
      peakText_(new QCPItemText(plot_)), limit_(new QCPItemStraightLine(plot_)), limitText_(new QCPItemText(plot_)),
      runsOut_(new QCPItemStraightLine(plot_)), runsOutText_(new QCPItemText(plot_)), note_(new QCPItemText(plot_))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setAccessibleName(tr("Memory of each rank over time"));
    plot_->setAccessibleName(accessibleName());
    plot_->setMouseTracking(true);
    plot_->setFocusPolicy(Qt::NoFocus);
    plot_->installEventFilter(this);
    plot_->axisRect()->setAutoMargins(QCP::msNone);
    plot_->axisRect()->setMargins(QMargins(static_cast<int>(left_), 8, static_cast<int>(right_), 8));
    plot_->xAxis->setTicker(timeTicker_);
    plot_->xAxis->setTickLabels(false);
    plot_->xAxis->setTickLength(0);
    byteTicker_ = QSharedPointer<ByteTicker>::create();
    byteTicker_->setTickCount(4);
    countTicker_ = QSharedPointer<QCPAxisTicker>::create();
    countTicker_->setTickCount(4);
    plot_->yAxis->setNumberFormat(QStringLiteral("g"));
    plot_->yAxis->setTickLength(0, 4);
    plot_->legend->setVisible(true);
    plot_->legend->setFillOrder(QCPLegend::foColumnsFirst, false);
    plot_->legend->setMargins(QMargins(6, 2, 6, 2));
    plot_->legend->setIconSize(14, 10);
    plot_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignTop | Qt::AlignRight);
    plot_->axisRect()->insetLayout()->setMargins(QMargins(4, 2, 4, 2));

    cursor_->setObjectName("cursor");
    cursor_->setVisible(false);
    peak_->setVisible(false);
    peak_->setStyle(QCPItemTracer::tsCircle);
    peak_->setSize(7);
    peakText_->setVisible(false);
    peakText_->setPadding(QMargins(kPeakPadding, 1, kPeakPadding, 4));
    peakText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignBottom);
    peakText_->position->setTypeX(QCPItemPosition::ptAbsolute);
    peakText_->setTextAlignment(Qt::AlignLeft);
    // left of the axis and its numbers: no curve comes there
    limitText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    limitText_->setTextAlignment(Qt::AlignLeft);
    limitText_->setPadding(QMargins(kPeakPadding, 1, 1, 1));
    limitText_->position->setTypeX(QCPItemPosition::ptAbsolute);
    limitText_->setClipToAxisRect(false);
    runsOutText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignBottom);
    runsOutText_->setPadding(QMargins(kPeakPadding, 1, kPeakPadding, 2));
    runsOutText_->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    for (QCPItemPosition* point : {runsOut_->point1, runsOut_->point2}) point->setTypeY(QCPItemPosition::ptAxisRectRatio);
    for (QCPAbstractItem* item : {static_cast<QCPAbstractItem*>(limit_), static_cast<QCPAbstractItem*>(limitText_),
                                  static_cast<QCPAbstractItem*>(runsOut_), static_cast<QCPAbstractItem*>(runsOutText_)}) {
        item->setVisible(false);
        item->setLayer(QStringLiteral("overlay"));
    }
    for (QCPItemPosition* point : {cursor_->point1, cursor_->point2}) {
        point->setTypeX(QCPItemPosition::ptAbsolute);
        point->setTypeY(QCPItemPosition::ptAxisRectRatio);
    }
    cursor_->setAntialiased(true);
    note_->position->setType(QCPItemPosition::ptAxisRectRatio);
    note_->position->setCoords(0.5, 0.5);
    note_->setText(tr("No memory is recorded in this trace"));
    for (QCPAbstractItem* item : {static_cast<QCPAbstractItem*>(cursor_), static_cast<QCPAbstractItem*>(peak_), static_cast<QCPAbstractItem*>(peakText_)})
        item->setLayer(QStringLiteral("overlay"));

    makeChooser();

    connect(&scene_, &TimelineScene::sourcesChanged, this, &MemoryPlot::rebuild);
    connect(&scene_, &TimelineScene::dataChanged, this, &MemoryPlot::addData);
    connect(&scene_, &TimelineScene::analysed, this, &MemoryPlot::addData);
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
    QColor ground = theme_.base; // below a text that curves cross
    ground.setAlphaF(0.75F);
    runsOutText_->setBrush(ground);
    note_->setColor(theme_.mutedText);
    limit_->setPen(QPen(theme_.error, 1.4, Qt::DashLine));
    limitText_->setColor(theme_.error);
    runsOut_->setPen(QPen(theme_.error, 1.4));
    runsOutText_->setColor(theme_.error);
    rebuild();
}

void MemoryPlot::setMargins(double left, double right)
{
    left_ = left;
    right_ = right;
    plot_->axisRect()->setMargins(QMargins(static_cast<int>(std::lround(left)), 8, static_cast<int>(std::lround(right)), 8));
    placeChooser();
    showRange();
}

// The timeline's own, so that both show a moment at the same pixel.
TimeMapping MemoryPlot::mapping() const { return scene_.axis().mapping(left_, std::max(1.0, width() - left_ - right_)); }

void MemoryPlot::setRank(std::optional<Rank> rank)
{
    if (rank == rank_) return;
    rank_ = rank;
    if (rank_ && gpu_ && trace())
        if (const std::optional<traces::GpuId> its = gpuOfRank(*trace(), *rank_)) gpu_ = its;
    rebuild();
}

const traces::Trace* MemoryPlot::trace() const
{
    return scene_.reference() < 0 || scene_.segments(scene_.reference()).empty() ? nullptr : &scene_.trace(scene_.reference());
}

TimeNs MemoryPlot::shift() const { return scene_.segments(scene_.reference()).front().shift; }

std::unique_ptr<RankCurve> MemoryPlot::totalOf(Rank rank) const
{
    if (composition_.inFlight) return std::make_unique<InFlightCurve>(rank);
    return std::make_unique<MemoryCurve>(rank, MemoryCurve::kAllClasses);
}

double MemoryPlot::unit() const { return composition_.inFlight ? 1.0 / chunks_ : 1; }

QString MemoryPlot::valueText(std::int64_t value) const
{
    return composition_.inFlight ? QString::number(static_cast<double>(value) * unit(), 'g', 4) : sizeText(value);
}

void MemoryPlot::addCurve(std::unique_ptr<RankCurve> sum, const QString& name, const QPen& pen)
{
    QCPGraph* graph = plot_->addGraph();
    graph->setLineStyle(QCPGraph::lsStepLeft);
    graph->setPen(pen);
    curves_.push_back({std::move(sum), graph, name});
}

// Above the one before, with its ground.
void MemoryPlot::addStacked(std::unique_ptr<RankCurve> sum, const QString& name, const QColor& colour)
{
    QCPGraph* below = curves_.empty() ? nullptr : curves_.back().graph;
    addCurve(std::move(sum), name, QPen(mixed(colour, theme_.text, 0.15), 1));
    QColor fill = colour;
    fill.setAlphaF(0.75F);
    curves_.back().graph->setBrush(fill);
    if (below) curves_.back().graph->setChannelFillGraph(below);
}

MemoryPlot::Composition MemoryPlot::compositionNow() const
{
    Composition now;
    now.reference = trace();
    if (!now.reference) return now;
    now.gpus = now.reference->gpus().size();
    now.ofGpus = wantsGpus_ && now.gpus > 0;
    if (now.ofGpus && gpu_ && index(*gpu_) < now.gpus) now.gpu = gpu_;
    now.inFlight = !now.ofGpus && now.reference->memory().empty();
    now.ranks = ranksOf(*now.reference);
    for (const MemoryClass memory : kStack)
        if (rank_ && now.reference->memorySeries(*rank_, memory)) now.classes |= bit(memory);
    if (scene_.sourceCount() > 1) {
        now.other = &scene_.trace(scene_.reference() == 0 ? 1 : 0);
        now.otherInFlight = now.other->memory().empty();
    }
    return now;
}

void MemoryPlot::rebuild()
{
    plot_->clearGraphs();
    curves_.clear();
    predictions_.clear();
    composition_ = compositionNow();
    const traces::Trace* source = composition_.reference;
    const std::vector<Rank>& ranks = composition_.ranks;
    chunks_ = source ? std::max(1, source->info.chunks) : 1;
    plot_->yAxis->setTicker(composition_.inFlight ? countTicker_ : byteTicker_);
    labelAxis();
    fillChooser();
    const bool chosen = !composition_.ofGpus && rank_ && std::find(ranks.begin(), ranks.end(), *rank_) != ranks.end();
    stacked_ = composition_.ofGpus ? composition_.gpu.has_value() : chosen && !composition_.inFlight;
    if (composition_.ofGpus) {
        addGpuCurves();
    } else if (stacked_) {
        unsigned classes = 0;
        for (const MemoryClass memory : kStack) {
            if (!(composition_.classes & bit(memory))) continue;
            classes |= bit(memory);
            const auto text = traces::memoryClassText(memory);
            addStacked(std::make_unique<MemoryCurve>(*rank_, classes), QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())),
                       theme_.memoryClasses[static_cast<std::size_t>(memory)]);
        }
    } else {
        for (const Rank rank : ranks) {
            if (chosen && rank != *rank_) continue;
            // The colour of its place among the ranks that there are: a file may call them anything.
            const auto place = static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
            addCurve(totalOf(rank), tr("rank %1").arg(rank.value), QPen(theme_.rank(place, static_cast<int>(ranks.size())), 1.6));
        }
    }
    const auto count = static_cast<int>(curves_.size());
    for (int i = 0; i < count; ++i) {
        Curve& curve = curves_[static_cast<std::size_t>(i)];
        curve.graph->setName(curve.name);
        // Of many ranks only the first, some between and the last are named: the colours are in order.
        const int every = (count + kMostLegendRanks - 1) / kMostLegendRanks;
        if (i % std::max(1, every) != 0 && i != count - 1) curve.graph->removeFromLegend();
    }
    if (composition_.other && !composition_.ofGpus) addPredictions(chosen ? std::vector<Rank>{*rank_} : ranks, stacked_);
    plot_->legend->setVisible(!curves_.empty());
    addData();
}

// The label runs along the axis: as much is said as there is height for.
void MemoryPlot::labelAxis()
{
    QString label;
    const QFontMetricsF metrics(plot_->yAxis->labelFont());
    for (const QString& text : {tr("micro-batches in flight"), tr("in flight")})
        if (composition_.inFlight && label.isEmpty() && metrics.horizontalAdvance(text) < height()) label = text;
    plot_->yAxis->setLabel(label);
}

// What the legend takes is kept within the axes: as many entries in a line as there is room for.
void MemoryPlot::wrapLegend()
{
    int widest = 1;
    for (int i = 0; i < plot_->legend->itemCount(); ++i)
        if (const QCPAbstractLegendItem* item = plot_->legend->item(i)) // the last line may have places left
            widest = std::max(widest, item->minimumOuterSizeHint().width());
    const QMargins margins = plot_->axisRect()->margins();
    const int room = width() - margins.left() - margins.right() - kLegendMargin;
    plot_->legend->setWrap(std::max(1, room / (widest + plot_->legend->columnSpacing())));
    plot_->legend->setFillOrder(QCPLegend::foColumnsFirst, true); // lays out anew what is there
}

void MemoryPlot::addReferenceData(Curve& curve)
{
    const std::size_t kept = curve.sum->update(*trace());
    const std::vector<RankPoint>& points = curve.sum->points();
    const auto data = curve.graph->data();
    // The last value holds until the end of the trace; that point goes whenever the curve grows.
    if (kept == 0) data->clear();
    else data->removeAfter(static_cast<double>(points[kept - 1].time + shift()) + 0.5);
    for (std::size_t i = kept; i < points.size(); ++i)
        data->add(QCPGraphData(static_cast<double>(points[i].time + shift()), static_cast<double>(points[i].value) * unit()));
    const TimeNs end = trace()->extent().end;
    if (!points.empty() && points.back().time < end)
        data->add(QCPGraphData(static_cast<double>(end + shift()), static_cast<double>(points.back().value) * unit()));
}

void MemoryPlot::addData()
{
    // A run's first step takes the simulation's place, a rank's or a class's first bytes need a curve of their own, and the
    // first bytes of all take the place of counts.
    if (compositionNow() != composition_) {
        rebuild();
        return;
    }
    double highest = 0;
    for (Curve& curve : curves_) {
        addReferenceData(curve);
        highest = std::max(highest, static_cast<double>(curve.sum->highest().value) * unit());
    }
    for (Prediction& prediction : predictions_) {
        prediction.total->update(*composition_.other);
        highest = std::max(highest, static_cast<double>(prediction.total->highest().value) * unit());
    }
    note_->setVisible(curves_.empty() && !scene_.empty());
    plot_->yAxis->setVisible(!curves_.empty());
    // the limit is in sight where the curves come near it; far above them it would press them flat
    const auto limit = static_cast<double>(this->limit());
    double top = highest * kHeadRoom;
    if (limit > 0 && limit < kNearLimit * highest) top = std::max(top, limit * 1.25);
    plot_->yAxis->setRange(0, highest > 0 ? top : 1);
    markPeak();
    markLimit();
    showHover();
    showRange();
}

traces::Bytes MemoryPlot::limit() const
{
    if (composition_.inFlight || !trace()) return 0;
    return composition_.ofGpus ? gpuTotal() : trace()->info.memoryLimit;
}

void MemoryPlot::showRange()
{
    const TimeRange& range = scene_.axis().range();
    const double lower = static_cast<double>(range.origin) + range.begin;
    plot_->xAxis->setRange(lower, lower + range.length);
    const double place = (peak_->position->key() - lower) / range.length;
    const bool seen = place >= 0 && place <= 1 && !curves_.empty() && peak_->position->value() > 0;
    peak_->setVisible(seen);
    peakText_->setVisible(seen);
    placePeakText();
    placeCursor();
    showPredictions();
    wrapLegend();
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
    labelAxis();
    placeChooser();
    placePeakText();
    placeCursor();
    wrapLegend();
    replot();
}

} // namespace stagecraft::ui
