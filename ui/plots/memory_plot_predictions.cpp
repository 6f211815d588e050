// SPDX-License-Identifier: GPL-3.0-or-later
//
// What was simulated beside the memory that is shown: a dashed line for each of few ranks.
#include "ui/plots/memory_plot.h"

#include <qcustomplot.h>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::Rank;
using traces::TimeNs;

constexpr int kMostPredictedRanks = 8;

} // namespace

void MemoryPlot::addPredictions(const std::vector<Rank>& ranks, bool stacked)
{
    if (composition_.otherInFlight != composition_.inFlight) return; // bytes are not set beside micro-batches
    // Dashed lines in the ranks' own colours; of many ranks, two lines each could not be told apart.
    if (ranks.size() > kMostPredictedRanks) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        QCPGraph* graph = plot_->addGraph();
        QPen pen = stacked || i >= curves_.size() ? QPen(theme_.text, 1.4) : curves_[i].graph->pen();
        pen.setStyle(Qt::DashLine);
        graph->setPen(pen);
        graph->setLineStyle(QCPGraph::lsStepLeft);
        if (i > 0) graph->removeFromLegend(); // one stands for all
        predictions_.push_back({totalOf(ranks[i]), graph});
    }
}

// The part in sight, as far as its lines can still be told from each other.
void MemoryPlot::showPredictions()
{
    if (predictions_.empty()) return;
    const int other = scene_.reference() == 0 ? 1 : 0;
    const TimeRange& range = scene_.axis().range();
    std::vector<Segment> seen;
    for (const Segment& segment : scene_.segments(other))
        if (segment.shown().end >= range.first() && segment.shown().begin <= range.last()) seen.push_back(segment);
    bool drawn = true;
    for (Prediction& prediction : predictions_) {
        prediction.total->update(scene_.trace(other));
        const std::vector<RankPoint>& points = prediction.total->points();
        QVector<double> keys;
        QVector<double> values;
        for (const Segment& segment : seen) {
            const auto add = [&](TimeNs t, std::int64_t value) {
                keys << static_cast<double>(t + segment.shift);
                values << static_cast<double>(value) * unit();
            };
            add(segment.span.begin, prediction.total->at(segment.span.begin));
            const auto first = std::upper_bound(points.begin(), points.end(), segment.span.begin, [](TimeNs t, const RankPoint& p) { return t < p.time; });
            for (auto point = first; point != points.end() && point->time < segment.span.end; ++point) {
                add(point->time, point->value);
                if (keys.size() > static_cast<qsizetype>(kMostPredictionPoints)) break;
            }
            if (keys.size() > static_cast<qsizetype>(kMostPredictionPoints)) {
                drawn = false;
                keys.clear();
                values.clear();
                break;
            }
        }
        prediction.graph->setData(keys, values, true);
    }
    predictions_.front().graph->setName(drawn ? tr("simulated") : tr("simulated: zoom in"));
}

} // namespace stagecraft::ui
