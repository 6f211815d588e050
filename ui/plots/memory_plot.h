// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory of each rank on the timeline's own time axis: the total of every rank, or of one chosen rank what it is made of,
// stacked, with its peak marked. Replots at most once per event-loop turn.
//
//   MemoryPlot memory(scene);
//   memory.setMargins(timeline.headerWidth(), timeline.rightMargin());
//   connect(&timeline, &TimelineWidget::hoverTimeChanged, &memory, &MemoryPlot::setHoverTime);
#pragma once

#include "ui/plots/memory_curve.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QSharedPointer>
#include <QWidget>

#include <optional>
#include <vector>

class QCustomPlot;
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
    [[nodiscard]] QCustomPlot& plot() { return *plot_; } // for exports and tests

    QSize sizeHint() const override;

public slots:
    void setRank(std::optional<stagecraft::traces::Rank> rank); // nullopt: the totals of all
    void setHoverTime(std::optional<stagecraft::traces::TimeNs> shown);

signals:
    void hoverTimeChanged(std::optional<stagecraft::traces::TimeNs> shown);
    void movedByUser();

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Curve {
        MemoryCurve sum;
        QCPGraph* graph = nullptr;
        QString name;
    };

    void rebuild(); // curves of another choice or source
    void addData(); // the same curves, longer
    void addReferenceData(Curve& curve);
    void addPrediction();
    void showRange();
    void showHover();
    void markPeak();
    void replot();
    [[nodiscard]] const traces::Trace* trace() const; // whose memory is shown: the reference's
    [[nodiscard]] traces::TimeNs shift() const;

    TimelineScene& scene_;
    Theme theme_;
    std::optional<traces::Rank> rank_;
    std::optional<traces::TimeNs> hoverTime_;
    QCustomPlot* plot_;
    QSharedPointer<TimeTicker> timeTicker_;
    QCPItemStraightLine* cursor_;
    QCPItemTracer* peak_;
    QCPItemText* peakText_;
    QCPItemText* note_; // in place of curves, where there are none
    std::vector<Curve> curves_;
    QCPGraph* prediction_ = nullptr; // the other source's total for the chosen rank
    double panX_ = 0;
    bool panning_ = false;
};

} // namespace stagecraft::ui
