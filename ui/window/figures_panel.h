// SPDX-License-Identifier: GPL-3.0-or-later
//
// The numbers of a step: each figure with its formula, by theory, simulated and measured; and under them the ranks. Those of
// a long step come when the scene has worked them out.
#pragma once

#include "ui/window/figure_rows.h"

#include <QScrollArea>

#include <memory>
#include <vector>

class QLabel;
class QSpinBox;
class QTableView;

namespace stagecraft::ui {

class FigureGrid;
class InlineNote;
class RankFiguresModel;
struct StepPlace;
class Workbench;

class FiguresPanel : public QScrollArea {
    Q_OBJECT
public:
    // The workbench must outlive the panel.
    explicit FiguresPanel(Workbench& workbench, QWidget* parent = nullptr);

    void refresh(); // called when sources or data changed
    [[nodiscard]] const std::vector<FigureRow>& rows() const;
    QSize sizeHint() const override;

public slots:
    void showStepOf(traces::Step step); // of the trace beside the simulated one

private:
    [[nodiscard]] std::optional<traces::Step> shownStep() const;
    // Figures of a finished step; null where there are none (yet), and then with the reason.
    struct Found {
        const traces::StepFigures* figures = nullptr;
        QString reason;
    };
    [[nodiscard]] Found figuresOf(int source, const StepPlace& place);
    [[nodiscard]] const std::optional<PlanFacts>& factsOfOther(int source);

    Workbench& workbench_;
    QSpinBox* step_;
    FigureGrid* grid_;
    QLabel* ranksTitle_;
    QTableView* ranksTable_;
    RankFiguresModel* ranks_;
    InlineNote* note_; // what is missing, and why

    // What the other trace says of its plan, read once.
    std::weak_ptr<const traces::Trace> factsTrace_;
    std::string factsJson_;
    std::optional<PlanFacts> facts_;
};

} // namespace stagecraft::ui
