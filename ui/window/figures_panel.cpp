// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figures_panel.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/window/rank_figures_model.h"
#include "ui/window/workbench.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

namespace stagecraft::ui {
namespace {

constexpr int kLatest = -1; // of the step box: the newest finished step

QLabel* newText(Qt::Alignment alignment, const char* tone = nullptr)
{
    auto* label = new QLabel;
    label->setAlignment(alignment);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    if (tone) label->setProperty("tone", tone);
    return label;
}

void setTextIfOther(QLabel& label, const QString& text)
{
    if (label.text() != text) label.setText(text);
}

} // namespace

FiguresPanel::FiguresPanel(Workbench& workbench, QWidget* parent)
    : QScrollArea(parent), workbench_(workbench), step_(new QSpinBox), simulatedHead_(newText(Qt::AlignRight, "hint")),
      otherHead_(newText(Qt::AlignRight, "hint")), grid_(new QGridLayout), ranksTitle_(new QLabel), ranksTable_(new QTableView),
      ranks_(new RankFiguresModel(this))
{
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Figures of the step"));

    step_->setObjectName("figuresStep");
    step_->setRange(kLatest, kLatest);
    step_->setSpecialValueText(tr("latest"));
    ignoreWheelUnlessFocused(*step_);
    auto* stepLabel = new QLabel(tr("S&tep"));
    stepLabel->setBuddy(step_);
    describe(*step_, tr("Step"), tr("The measured step whose figures are shown; selecting a block chooses its step."));
    connect(step_, &QSpinBox::valueChanged, this, &FiguresPanel::refresh);

    grid_->setContentsMargins(0, 0, 0, 0);
    grid_->setHorizontalSpacing(12);
    grid_->setVerticalSpacing(0);
    grid_->setColumnStretch(0, 1);
    grid_->addWidget(newText(Qt::AlignLeft), 0, 0);
    auto* formulaHead = newText(Qt::AlignRight, "hint");
    formulaHead->setText(tr("formula"));
    formulaHead->setToolTip(tr("What theory says for equal stages and free transfers."));
    grid_->addWidget(formulaHead, 0, 1);
    grid_->addWidget(simulatedHead_, 0, 2);
    grid_->addWidget(otherHead_, 0, 3);

    QFont bold = ranksTitle_->font();
    bold.setBold(true);
    ranksTitle_->setFont(bold);
    ranksTable_->setObjectName("rankFigures");
    ranksTable_->setModel(ranks_);
    ranksTable_->setShowGrid(false);
    ranksTable_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    ranksTable_->setTabKeyNavigation(false);
    ranksTable_->setSelectionBehavior(QAbstractItemView::SelectRows);
    ranksTable_->verticalHeader()->hide();
    ranksTable_->verticalHeader()->setDefaultSectionSize(ranksTable_->fontMetrics().height() + 4);
    ranksTable_->horizontalHeader()->setMinimumSectionSize(30);
    ranksTable_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    ranksTable_->horizontalHeader()->setStretchLastSection(true);
    describe(*ranksTable_, tr("Figures of the ranks"), tr("What each rank did in the step."));

    auto* column = new QWidget;
    auto* layout = new QVBoxLayout(column);
    layout->setContentsMargins(10, 6, 10, 8);
    layout->setSpacing(6);
    auto* top = new QHBoxLayout;
    top->addWidget(stepLabel);
    top->addWidget(step_);
    top->addStretch(1);
    layout->addLayout(top);
    layout->addLayout(grid_);
    layout->addWidget(ranksTitle_);
    layout->addWidget(ranksTable_);
    layout->addStretch(1);
    setWidget(column);
    refresh();
}

QSize FiguresPanel::sizeHint() const { return {360, 520}; }

std::optional<traces::Step> FiguresPanel::shownStep() const
{
    const std::optional<int> source = workbench_.otherSource();
    if (!source) return std::nullopt;
    const std::vector<StepPlace>& steps = workbench_.scene().steps(*source).all();
    if (steps.empty()) return std::nullopt;
    if (step_->value() != kLatest) {
        const traces::Step wanted{step_->value()};
        if (workbench_.scene().steps(*source).find(wanted)) return wanted;
    }
    // While a step runs its figures jump with every action: the last finished one stands still.
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
        if (step->finished) return step->step;
    return steps.back().step;
}

void FiguresPanel::showStepOf(traces::Step step)
{
    if (step.value <= step_->maximum()) step_->setValue(step.value);
}

void FiguresPanel::refresh()
{
    const TimelineScene& scene = workbench_.scene();
    const Simulation& simulation = workbench_.simulation().simulation();
    FigureInput input;
    input.plan = &workbench_.document().plan();
    if (simulation.trace) {
        input.simulated = &simulation.figures;
        input.costs = &simulation.costs;
    }

    const std::optional<int> source = workbench_.otherSource();
    const std::optional<traces::Step> step = shownStep();
    if (source) {
        const std::vector<StepPlace>& steps = scene.steps(*source).all();
        const QSignalBlocker quiet(step_);
        step_->setMaximum(steps.empty() ? kLatest : steps.back().step.value);
    }
    step_->setEnabled(source.has_value() && step_->maximum() > kLatest);
    if (source && step) {
        const std::optional<traces::StepFigures>& figures = scene.figures(*source, *step);
        if (figures) input.other = &*figures;
        input.otherMicrobatches = scene.trace(*source).info.microbatches;
        if (workbench_.otherIsRun() && workbench_.run().result()) input.result = &*workbench_.run().result();
    }

    simulatedHead_->setText(input.simulated ? tr("simulated") : QString());
    otherHead_->setText(input.other ? toQt(traces::labelText(scene.trace(*source).info.label)) : QString());
    otherHead_->setToolTip(input.other ? tr("Step %1 of %2").arg(step->value).arg(sourceLabel(scene.sources()[static_cast<std::size_t>(*source)])) : QString());
    showRows(figureRows(input));

    const traces::StepFigures* ofRanks = input.other ? input.other : input.simulated;
    ranks_->setFigures(ofRanks);
    ranksTitle_->setText(input.other ? tr("Ranks, step %1, %2").arg(step->value).arg(otherHead_->text()) : tr("Ranks, simulated"));
    ranksTitle_->setVisible(ofRanks != nullptr);
    ranksTable_->setVisible(ofRanks != nullptr);
    const int shown = std::min(ranks_->rowCount(), 12);
    ranksTable_->setFixedHeight(ranksTable_->horizontalHeader()->sizeHint().height() +
                                shown * ranksTable_->verticalHeader()->defaultSectionSize() + 2 * ranksTable_->frameWidth() + 2);
    // a third column of figures comes with a run: the panel widens for it rather than cut it off
    grid_->invalidate();
    setMinimumWidth(std::max(300, grid_->minimumSize().width() + 20 + verticalScrollBar()->sizeHint().width()));
}

FiguresPanel::Line FiguresPanel::newLine(int row)
{
    Line line{newText(Qt::AlignLeft), newText(Qt::AlignRight, "hint"), newText(Qt::AlignRight), newText(Qt::AlignRight),
              newText(Qt::AlignLeft, "small")};
    grid_->addWidget(line.name, row, 0);
    grid_->addWidget(line.byFormula, row, 1);
    grid_->addWidget(line.simulated, row, 2);
    grid_->addWidget(line.other, row, 3);
    grid_->addWidget(line.formula, row + 1, 0, 1, 4);
    return line;
}

void FiguresPanel::showRows(const std::vector<FigureRow>& rows)
{
    if (rows == rows_) return;
    rows_ = rows;
    while (lines_.size() < rows.size()) lines_.push_back(newLine(1 + 2 * static_cast<int>(lines_.size())));
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Line& line = lines_[i];
        const bool used = i < rows.size();
        for (QLabel* label : {line.name, line.byFormula, line.simulated, line.other, line.formula}) label->setVisible(used);
        if (!used) continue;
        const FigureRow& row = rows[i];
        setTextIfOther(*line.name, row.name);
        setTextIfOther(*line.byFormula, row.byFormula);
        setTextIfOther(*line.simulated, row.simulated);
        setTextIfOther(*line.other, row.other);
        setTextIfOther(*line.formula, row.formula);
        for (QLabel* label : {line.name, line.byFormula, line.simulated, line.other, line.formula}) label->setToolTip(row.tip);
    }
}

} // namespace stagecraft::ui
