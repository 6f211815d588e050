// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory of each rank on the timeline's own time axis: the total of every rank, or of one chosen rank what it is made of,
// stacked, with its peak marked. Replots at most once per event-loop turn.
//
//   MemoryPlot memory(scene);
//   memory.setHeaderWidth(timeline.headerWidth());
//   connect(&timeline, &TimelineWidget::hoverTimeChanged, &memory, &MemoryPlot::setHoverTime);
#pragma once

#include "ui/plots/memory_curve.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QWidget>

#include <map>
#include <optional>

class QCustomPlot;
class QCPItemStraightLine;
class QCPItemText;
class QCPItemTracer;

namespace stagecraft::ui {

class MemoryPlot : public QWidget {
    Q_OBJECT
public:
    // The scene must outlive the widget.
    explicit MemoryPlot(TimelineScene& scene, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setHeaderWidth(double width);  // the left margin, so that times lie under each other
    void setRightMargin(double width);  // and the right one, for the timeline's scroll bar
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
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void rebuild();
    void addData();
    void showRange();
    void fitBytes();
    void showHover();
    void markPeak();
    void queueReplot();

    TimelineScene& scene_;
    Theme theme_;
    std::optional<traces::Rank> rank_;
    std::optional<traces::TimeNs> hoverTime_;
    QCustomPlot* plot_;
    QCPItemStraightLine* cursor_;
    QCPItemText* cursorText_;
    QCPItemTracer* peak_;
    QCPItemText* peakText_;
    QCPItemText* emptyText_;
    std::vector<MemoryCurve> curves_;
    double panX_ = 0;
    bool panning_ = false;
};

} // namespace stagecraft::ui
