// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory of each rank on the timeline's own time axis: the total of every rank, or of one chosen rank what it is made of,
// stacked, with its peak marked and what makes it up; the limit of a rank where the trace knows one, and the moment from which it
// would run out; dashed what was simulated beside it. Where the trace knows the memory of GPUs, a chooser beside the axis shows that
// instead: of one GPU its parts stacked, with the card's total as limit, or what is used of each. A trace that records no bytes shows the micro-batches
// whose activations each rank holds instead. Replots at most once per event-loop turn.
//
//   MemoryPlot memory(scene);
//   memory.setMargins(timeline.headerWidth(), timeline.rightMargin());
//   connect(&timeline, &TimelineWidget::hoverTimeChanged, &memory, &MemoryPlot::setHoverTime);
#pragma once

#include "ui/plots/rank_curve.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QSharedPointer>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

class QComboBox;
class QCustomPlot;
class QCPAxisTicker;
class QCPGraph;
class QCPItemStraightLine;
class QCPItemText;
class QCPItemTracer;

namespace stagecraft::ui {

class TimeTicker;

class MemoryPlot : public QWidget {
    Q_OBJECT
public:
    // The scene must outlive the widget.
    explicit MemoryPlot(TimelineScene& scene, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setMargins(double left, double right); // TimelineWidget's headerWidth() and rightMargin(), to align with it
    [[nodiscard]] std::optional<traces::Rank> rank() const { return rank_; }
    [[nodiscard]] bool showsGpus() const { return composition_.ofGpus; }
    [[nodiscard]] QCustomPlot& plot() { return *plot_; } // for exports and tests

    QSize sizeHint() const override;

public slots:
    // nullopt: the totals of all. Where one GPU is shown, it becomes that of the rank.
    void setRank(std::optional<stagecraft::traces::Rank> rank);
    void showRanks();
    void showGpu(std::optional<stagecraft::traces::GpuId> gpu); // nullopt: all; ranks where the trace has none
    void setHoverTime(std::optional<stagecraft::traces::TimeNs> shown);

signals:
    void pressed(); // by a mouse: it has no keys of its own
    void hoverTimeChanged(std::optional<stagecraft::traces::TimeNs> shown);

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Curve {
        std::unique_ptr<RankCurve> sum;
        QCPGraph* graph = nullptr;
        QString name;
        std::optional<traces::GpuId> gpu = {}; // whose it is, where it is none of a rank
    };
    struct Prediction { // the other source's curve of one rank
        std::unique_ptr<RankCurve> total;
        QCPGraph* graph = nullptr;
    };
    static constexpr std::size_t kMostPredictionPoints = 20'000;
    static constexpr int kPeakPadding = 6; // of what is said of peaks
    // What the curves are of; data that changes it needs other curves. The traces are those of the scene's sources.
    struct Composition {
        const traces::Trace* reference = nullptr;
        const traces::Trace* other = nullptr;
        bool inFlight = false;       // micro-batches, for want of bytes
        bool otherInFlight = false;
        std::vector<traces::Rank> ranks;
        unsigned classes = 0;        // of the chosen rank
        std::size_t gpus = 0;        // that the trace knows
        bool ofGpus = false;         // they are shown
        std::optional<traces::GpuId> gpu; // that one alone

        bool operator==(const Composition&) const = default;
    };

    void rebuild(); // curves of another choice or source
    void addData(); // the same curves, longer
    void addReferenceData(Curve& curve);
    void addCurve(std::unique_ptr<RankCurve> sum, const QString& name, const QPen& pen);
    void addStacked(std::unique_ptr<RankCurve> sum, const QString& name, const QColor& colour);
    void makeChooser();
    void fillChooser();
    void placeChooser();
    void addGpuCurves();
    [[nodiscard]] traces::Bytes gpuTotal() const; // 0: not known
    void tellGpuPeak(traces::GpuId gpu, const RankPoint& point);
    [[nodiscard]] traces::Bytes limit() const; // of the curves; 0: none
    void addPredictions(const std::vector<traces::Rank>& ranks, bool stacked);
    void showPredictions();
    void labelAxis();
    void wrapLegend();
    [[nodiscard]] Composition compositionNow() const;
    [[nodiscard]] TimeMapping mapping() const;
    void placePeakText();
    [[nodiscard]] std::unique_ptr<RankCurve> totalOf(traces::Rank rank) const;
    [[nodiscard]] QString valueText(std::int64_t value) const;
    [[nodiscard]] double unit() const; // of a curve's value, on the axis
    void showRange();
    void showHover();
    void placeCursor();
    void markPeak();
    void markLimit();
    [[nodiscard]] const traces::MemoryPeak* peakOf(traces::Rank rank) const; // null where its step is not worked out, or none
    [[nodiscard]] QString compositionText(traces::Rank rank) const;
    void replot();
    [[nodiscard]] const traces::Trace* trace() const; // whose memory is shown: the reference's
    [[nodiscard]] traces::TimeNs shift() const;

    TimelineScene& scene_;
    Theme theme_;
    std::optional<traces::Rank> rank_;
    bool wantsGpus_ = false;
    std::optional<traces::GpuId> gpu_; // of those; nullopt: all
    std::optional<traces::TimeNs> hoverTime_;
    QComboBox* chooser_ = nullptr;
    QCustomPlot* plot_;
    QSharedPointer<TimeTicker> timeTicker_;
    QCPItemStraightLine* cursor_;
    QCPItemTracer* peak_;
    QCPItemText* peakText_;
    QString peakLine_; // what it is
    QString peakParts_; // and what makes it up, where there is room
    QCPItemStraightLine* limit_;
    QCPItemText* limitText_;
    QCPItemStraightLine* runsOut_;
    QCPItemText* runsOutText_;
    QCPItemText* note_; // in place of curves, where there are none
    std::vector<Curve> curves_;
    std::vector<Prediction> predictions_;
    Composition composition_;
    bool stacked_ = false; // the curves hold the sum below them too
    int chunks_ = 1; // of the trace, for micro-batches in flight
    double left_ = 130; // of the axes
    double right_ = 16;
    QSharedPointer<QCPAxisTicker> byteTicker_;
    QSharedPointer<QCPAxisTicker> countTicker_;
    double panX_ = 0;
    bool panning_ = false;
};

} // namespace stagecraft::ui
