// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figures_panel.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/window/figure_grid.h"
#include "ui/window/rank_figures_model.h"
#include "ui/window/workbench.h"

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

} // namespace

FiguresPanel::FiguresPanel(Workbench& workbench, QWidget* parent)
    : QScrollArea(parent), workbench_(workbench), step_(new QSpinBox), grid_(new FigureGrid), ranksTitle_(new QLabel), ranksTable_(new QTableView),
      ranks_(new RankFiguresModel(this)), note_(new InlineNote(InlineNote::Tone::Hint))
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
    describe(*step_, tr("Step"), tr("The step whose figures are shown, of the trace beside the simulated one; selecting a block chooses its step."));
    connect(step_, &QSpinBox::valueChanged, this, &FiguresPanel::refresh);
    connect(&workbench_.scene(), &TimelineScene::analysed, this, &FiguresPanel::refresh);

    connect(grid_, &FigureGrid::lineFocused, this, [this](QWidget* line) { ensureWidgetVisible(line); });

    QFont bold = ranksTitle_->font();
    bold.setBold(true);
    ranksTitle_->setFont(bold);
    ranksTitle_->setTextFormat(Qt::PlainText);
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
    note_->setObjectName("figuresNote");
    layout->addWidget(note_);
    layout->addWidget(grid_);
    layout->addWidget(ranksTitle_);
    layout->addWidget(ranksTable_);
    layout->addStretch(1);
    setWidget(column);
    refresh();
}

const std::vector<FigureRow>& FiguresPanel::rows() const { return grid_->rows(); }
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

FiguresPanel::Found FiguresPanel::figuresOf(int source, const StepPlace& place)
{
    const TimelineScene& scene = workbench_.scene();
    const TraceSource& shown = scene.sources()[static_cast<std::size_t>(source)];
    if (!place.finished)
        return {nullptr, shown.growing ? tr("Step %1 is still running; its figures come when it has ended.").arg(place.step.value)
                                       : tr("Step %1 was not finished, so it has no figures.").arg(place.step.value)};
    if (const std::optional<traces::StepFigures>& figures = scene.figures(source, place.step)) return {&*figures, {}};
    if (scene.calculating(source, place.step))
        return {nullptr, tr("Step %1 has %L2 blocks: calculating its figures\u2026").arg(place.step.value).arg(place.slices)};
    return {nullptr, tr("Step %1 has no computing block.").arg(place.step.value)};
}

const std::optional<PlanFacts>& FiguresPanel::factsOfOther(int source)
{
    const std::shared_ptr<const traces::Trace>& trace = workbench_.scene().sources()[static_cast<std::size_t>(source)].trace;
    if (factsTrace_.lock() != trace || factsJson_ != trace->info.planJson) {
        factsTrace_ = trace;
        factsJson_ = trace->info.planJson;
        // A run that has not told its plan yet is that of the controller.
        facts_ = factsJson_.empty() && workbench_.run().trace() == trace ? std::optional(factsOf(workbench_.run().plan()))
                                                                         : factsOf(trace->info);
    }
    return facts_;
}

void FiguresPanel::refresh()
{
    const TimelineScene& scene = workbench_.scene();
    const Simulation& simulation = workbench_.simulation().simulation();
    const std::optional<int> source = workbench_.otherSource();
    const std::optional<traces::Step> step = shownStep();
    FigureInput input;
    input.simulatedFacts = factsOf(workbench_.document().plan());
    QString note;
    if (source) {
        const std::vector<StepPlace>& steps = scene.steps(*source).all();
        const QSignalBlocker quiet(step_);
        step_->setMaximum(steps.empty() ? kLatest : steps.back().step.value);
        input.otherFacts = factsOfOther(*source);
    }
    step_->setEnabled(source.has_value() && step_->maximum() > kLatest);
    if (source && step) {
        const Found found = figuresOf(*source, *scene.steps(*source).find(*step));
        input.other = found.figures;
        if (input.other) input.otherInsight = &scene.insight(*source, *step);
        note = found.reason;
        if (input.other && workbench_.otherIsRun() && workbench_.run().trace() == workbench_.other() && workbench_.run().result())
            input.result = &*workbench_.run().result();
    }
    // A trace that is looked at alone is not set against a plan that has nothing to do with it.
    const bool strangers = source && (!input.otherFacts || !comparable(*input.simulatedFacts, *input.otherFacts));
    const bool withSimulated = simulation.trace && !(strangers && !workbench_.simulatedSource());
    if (withSimulated) {
        input.simulated = &simulation.figures;
        if (const std::optional<int> own = workbench_.simulatedSource()) input.simulatedInsight = &scene.insight(*own, simulation.figures.step);
        input.costs = &simulation.costs;
    }
    if (strangers && withSimulated && input.other)
        note = tr("The trace comes from another plan than the simulated one: their figures are not set against each other.");

    const QString label = source ? toQt(traces::labelText(scene.trace(*source).info.label)) : QString();
    const QString otherName = workbench_.otherIsRun() ? label : (workbench_.otherFile().isEmpty() ? tr("earlier,\n%1") : tr("opened,\n%1")).arg(label);
    grid_->setHeads(input.simulated ? tr("simulated") : QString(), input.other ? otherName : QString(),
                    input.other ? tr("Step %1 of %2").arg(step->value).arg(sourceLabel(scene.sources()[static_cast<std::size_t>(*source)])) : QString());
    note_->say(note);
    grid_->setRows(figureRows(input));

    const traces::StepFigures* ofRanks = input.other ? input.other : input.simulated;
    const std::optional<int> ranksSource = input.other ? source : workbench_.simulatedSource();
    ranks_->setFigures(ofRanks, ofRanks && ranksSource ? scene.gaps(*ranksSource, ofRanks->step).idle() : std::span<const IdleShare>());
    ranksTitle_->setText(input.other ? tr("Ranks, step %1, %2").arg(step->value).arg(QString(otherName).replace('\n', ' ')) : tr("Ranks, simulated"));
    ranksTitle_->setVisible(ofRanks != nullptr);
    ranksTable_->setVisible(ofRanks != nullptr);
    const int shown = std::min(ranks_->rowCount(), 12);
    ranksTable_->setFixedHeight(ranksTable_->horizontalHeader()->sizeHint().height() +
                                shown * ranksTable_->verticalHeader()->defaultSectionSize() + 2 * ranksTable_->frameWidth() + 2);
    // a third column of figures comes with a run: the panel widens for it rather than cut it off
    setMinimumWidth(std::max(300, grid_->leastWidth() + 20 + verticalScrollBar()->sizeHint().width()));
}

} // namespace stagecraft::ui
