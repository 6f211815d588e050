// SPDX-License-Identifier: GPL-3.0-or-later
//
// The curves of a sweep: a line per schedule for each figure, what was simulated solid with a mark per point, the closed form dashed
// in the same colour (Amdahl's or Gustafson's law for the speed-up). Several figures stand in a grid with one legend. Series are told
// apart by colour and by the form of their marks. The keys: Left and Right go from point to point, Up and Down from series to series,
// Home and End to the ends; the point is told by pointTold(), as the one under the mouse is.
//
//   SweepPlot plot;
//   plot.setSweep(sweep);
//   plot.setFigures({engine::SweepFigure::BubbleMakespan});
#pragma once

#include "engine/explain/sweep_figures.h"
#include "ui/theme/theme.h"

#include <QVector>
#include <QWidget>

#include <optional>
#include <vector>

class QCustomPlot;
class QCPAxisRect;
class QCPItemTracer;

namespace stagecraft::ui {

// What a plot of everything shows: a bubble, the step, the fullest memory (activations where no bytes are known) and the throughput;
// the speed-up instead of the throughput where ranks are scaled.
std::vector<engine::SweepFigure> mainFigures(const engine::Sweep& sweep);

class SweepPlot : public QWidget {
    Q_OBJECT
public:
    explicit SweepPlot(QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setSweep(engine::Sweep sweep);
    void setFigures(std::vector<engine::SweepFigure> figures); // one or more
    void setTitle(const QString& title);                       // above the panels; empty: none
    [[nodiscard]] const engine::Sweep& sweep() const { return sweep_; }
    [[nodiscard]] QCustomPlot& plot() { return *plot_; }

    // Which point the keys are at.
    struct Place {
        std::size_t series = 0;
        std::size_t point = 0;
    };
    [[nodiscard]] const std::optional<Place>& place() const { return place_; }
    [[nodiscard]] QString tellOf(const Place& place) const; // "1F1B, m = 8: bubble of the makespan 27.27 %, by formula 27.27 %"

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void pointTold(const QString& text); // empty: none any more

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    void build();
    void addPanel(QCPAxisRect& rect, engine::SweepFigure figure);
    void addLegend();
    void goTo(const std::optional<Place>& place);
    void pointAt(const QPoint& position);
    [[nodiscard]] QColor colour(std::size_t series) const;

    engine::Sweep sweep_;
    std::vector<engine::SweepFigure> figures_{engine::SweepFigure::BubbleMakespan};
    QString title_;
    QCustomPlot* plot_;
    std::vector<QCPAxisRect*> panels_;     // by figure
    std::vector<QCPItemTracer*> tracers_;  // by figure: where the keys are
    bool anyForm_ = false;                 // some panel has a dashed line
    std::optional<Place> place_;
    Theme theme_;
};

} // namespace stagecraft::ui
