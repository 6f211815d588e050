// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the memory plot says of the step's peaks: where the highest is, what it consists of, and where a limit is broken.
#include "ui/plots/memory_plot.h"

#include "ui/timeline/time_ticks.h"

#include <qcustomplot.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::MemoryClass;
using traces::Rank;
using traces::TimeNs;

constexpr int kTwoLines = 160; // height from which the peak's text may have two lines beside the legend
constexpr std::size_t kMostSearchedSteps = 64; // of which the largest peak is looked for

QString sizeText(traces::Bytes bytes) { return QString::fromStdString(traces::formatSize(bytes)); }

} // namespace

const traces::MemoryPeak* MemoryPlot::peakOf(Rank rank) const
{
    // of several steps, the one that holds the most: that is where the curve has its peak
    const traces::MemoryPeak* most = nullptr;
    for (const StepPlace& place : scene_.steps(scene_.reference()).all())
        for (const traces::MemoryPeak& peak : scene_.insight(scene_.reference(), place.step).peaks)
            if (peak.rank == rank && peak.bytes > 0 && (!most || peak.bytes > most->bytes)) most = &peak;
    return most;
}

void MemoryPlot::markPeak()
{
    const Curve* top = nullptr;
    for (const Curve& curve : curves_)
        if (!top || curve.sum->highest().value > top->sum->highest().value) top = &curve;
    const bool seen = top && top->sum->highest().value > 0;
    peak_->setVisible(seen);
    peakText_->setVisible(seen);
    if (!seen) return;
    const RankPoint point = top->sum->highest();
    const double key = static_cast<double>(point.time + shift());
    peak_->position->setCoords(key, static_cast<double>(point.value) * unit());
    if (top->gpu) return tellGpuPeak(*top->gpu, point);
    peakLine_ = tr("peak %1 on rank %2").arg(valueText(point.value)).arg(top->sum->rank().value);
    peakParts_ = compositionText(top->sum->rank());
}

// Beside the peak where there is room, else as far towards it as the axes reach.
void MemoryPlot::placePeakText()
{
    const TimeMapping map = mapping();
    const QFontMetricsF metrics(peakText_->font());
    const auto widthOf = [&](const QString& text) { return metrics.horizontalAdvance(text) + 2 * kPeakPadding; };
    const bool both = !peakParts_.isEmpty() && widthOf(peakParts_) <= map.width() && height() >= kTwoLines;
    peakText_->setText(both ? peakLine_ + QLatin1Char('\n') + peakParts_ : peakLine_);
    const double width = std::max(widthOf(peakLine_), both ? widthOf(peakParts_) : 0);
    const double x = map.x(static_cast<TimeNs>(peak_->position->key()));
    peakText_->position->setCoords(std::max(map.left(), std::min(x, map.right() - width)), peak_->position->value());
}

// "weights 1 GiB, activations 256 MiB of 4 micro-batches"
QString MemoryPlot::compositionText(Rank rank) const
{
    if (composition_.inFlight || scene_.steps(scene_.reference()).all().size() > kMostSearchedSteps) return {};
    const traces::MemoryPeak* peak = peakOf(rank);
    if (!peak) return {};
    QStringList parts;
    for (std::size_t c = 0; c < traces::kMemoryClassCount; ++c) {
        const auto memory = static_cast<MemoryClass>(c);
        const traces::Bytes bytes = peak->byClass[c];
        if (bytes <= 0) continue;
        const auto name = traces::memoryClassText(memory);
        parts << QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())) + QLatin1Char(' ') + sizeText(bytes);
        if (const auto held = static_cast<int>(peak->activations.size()); memory == MemoryClass::Activations && held > 0) {
            const traces::HeldActivations& first = peak->activations.front();
            const traces::HeldActivations& last = peak->activations.back();
            const auto nameOf = [](const traces::HeldActivations& one) {
                return QString::fromStdString(toText(makeAction(traces::ActionKind::Forward, one.stage, one.microbatch, one.flow)));
            };
            parts.back() += held == 1 ? tr(" of %1").arg(nameOf(first)) : tr(" of %1 forwards, %2 to %3").arg(held).arg(nameOf(first), nameOf(last));
        }
    }
    return parts.join(QStringLiteral(", "));
}

// The limit as a line across, and the first moment at which a rank holds more.
void MemoryPlot::markLimit()
{
    const traces::Bytes limit = this->limit();
    const bool seen = limit > 0 && !curves_.empty() && static_cast<double>(limit) < plot_->yAxis->range().upper;
    limit_->setVisible(seen);
    limitText_->setVisible(seen);
    runsOut_->setVisible(false);
    runsOutText_->setVisible(false);
    if (!seen) return;
    limit_->point1->setCoords(0, static_cast<double>(limit));
    limit_->point2->setCoords(1, static_cast<double>(limit));
    limitText_->setText((composition_.ofGpus ? tr("total\n%1") : tr("limit\n%1")).arg(sizeText(limit)));
    limitText_->position->setCoords(0, static_cast<double>(limit));
    if (composition_.ofGpus || scene_.steps(scene_.reference()).all().size() > kMostSearchedSteps) return;
    const traces::MemoryPeak* first = nullptr;
    for (const StepPlace& place : scene_.steps(scene_.reference()).all())
        for (const traces::MemoryPeak& peak : scene_.insight(scene_.reference(), place.step).peaks)
            if (peak.runsOut && (!rank_ || peak.rank == *rank_) && (!first || *peak.runsOut < *first->runsOut)) first = &peak;
    if (!first) return;
    const double key = static_cast<double>(*first->runsOut + shift());
    runsOut_->setVisible(true);
    runsOut_->point1->setCoords(key, 0);
    runsOut_->point2->setCoords(key, 1);
    runsOutText_->setVisible(true);
    runsOutText_->setText(tr("rank %1 runs out at %2").arg(first->rank.value).arg(durationText(*first->runsOut + shift())));
    runsOutText_->position->setCoords(key, 1);
}

} // namespace stagecraft::ui
