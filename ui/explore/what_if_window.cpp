// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/what_if_window.h"

#include "engine/session/session.h"
#include "ui/bridge/text.h"
#include "ui/explore/schedule_list.h"
#include "ui/explore/text_table.h"
#include "ui/explore/window_parts.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using engine::Observed;
using engine::Plan;
using engine::Prediction;
using engine::WhatIfKind;
using engine::WhatIfRow;

WhatIfWindow::WhatIfWindow(Workbench& workbench, QWidget* parent)
    : QDialog(parent, Qt::Window), workbench_(workbench), traces_(new QComboBox), schedules_(new ScheduleList), microbatches_(new QLineEdit),
      partition_(new QLineEdit), stageTimes_(new QLineEdit), problem_(new InlineNote(InlineNote::Tone::Problem)),
      notes_(new InlineNote(InlineNote::Tone::Hint)), start_(new QPushButton(tr("&Predict"))), run_(new QPushButton(tr("&Run the chosen one"))),
      timeline_(new TimelineWidget(scene_)), table_(new TextTable(tr("The trace's step, and each prediction"), {.leftColumns = 3}))
{
    setObjectName("whatIf");
    setWindowTitle(tr("What if"));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(besideControls(buildControls(), buildResult(), 260));
    resize(1180, 720);
    connect(start_, &QPushButton::clicked, this, &WhatIfWindow::predict);
    connect(run_, &QPushButton::clicked, this, &WhatIfWindow::runChosen);
    connect(table_, &QTableWidget::itemSelectionChanged, this, &WhatIfWindow::showChosen);
    connect(&job_, &JobLane::busyChanged, this, &WhatIfWindow::refresh);
    connect(&workbench_, &Workbench::otherChanged, this, &WhatIfWindow::listTraces);
    connect(&workbench_, &Workbench::runsChanged, this, &WhatIfWindow::listTraces);
    connect(&workbench_.run(), &RunController::stateChanged, this, [this](engine::SessionState state) {
        if (engine::finished(state)) takeRun();
        refresh();
    });
    schedules_->check({"gpipe", "1f1b", "zb-h1"});
    listTraces();
}

WhatIfWindow::~WhatIfWindow()
{
    delete timeline_; // before the scene that it looks at
}

QWidget* WhatIfWindow::buildControls()
{
    traces_->setObjectName("whatIfTrace");
    schedules_->setObjectName("whatIfSchedules");
    microbatches_->setObjectName("whatIfMicrobatches");
    partition_->setObjectName("whatIfPartition");
    stageTimes_->setObjectName("whatIfStageTimes");
    problem_->setObjectName("whatIfProblem");
    notes_->setObjectName("whatIfNotes");
    start_->setObjectName("whatIfStart");
    run_->setObjectName("whatIfRun");
    for (QLineEdit* edit : {microbatches_, partition_, stageTimes_}) edit->setPlaceholderText(tr("as in the trace"));
    traces_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    traces_->setMinimumContentsLength(12);
    QFormLayout* form = newControlForm();
    addField(*form, tr("&Trace"), *traces_, tr("The run or opened trace whose times predictions are made from."), LabelPlace::Above);
    addField(*form, tr("Sche&dules"), *schedules_, tr("Each that is checked becomes a prediction; Space checks one."), LabelPlace::Above);
    addField(*form, tr("&Micro-batches"), *microbatches_, tr("Another number of them, of the same size."), LabelPlace::Above);
    addField(*form, tr("&Layers of each stage"), *partition_, tr("Another partition, such as 3, 2, 2, 3; a rule: flops, uniform, parameters, memory or time; or Megatron-LM's layout, such as Et*2|t*6,L."), LabelPlace::Above);
    addField(*form, tr("F&actor on each stage's time"), *stageTimes_, tr("A factor for each stage: 0.5 makes it twice as fast, as in 1, 1, 0.5, 1."),
             LabelPlace::Above);
    describe(*start_, tr("Predict"), tr("Simulates each changed plan with what the trace's actions took."));
    describe(*run_, tr("Run the chosen one"), tr("Takes the plan of the chosen prediction into the lab, really runs it, and tells how far off it was."));
    start_->setDefault(true);
    run_->setAutoDefault(false);
    return controlColumn(form, {problem_, start_, run_});
}

QWidget* WhatIfWindow::buildResult()
{
    timeline_->setObjectName("whatIfTimeline");
    timeline_->setEmptyText(tr("Nothing predicted yet"), tr("Choose a trace and what is to be other than it was, and press Predict."));
    table_->setObjectName("whatIfTable");
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    auto* below = new QWidget;
    auto* layout = new QVBoxLayout(below);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(table_, 1);
    layout->addWidget(notes_);
    return aboveTable(timeline_, below);
}

void WhatIfWindow::setTheme(const Theme& theme) { timeline_->setTheme(theme); }

// The last runs, newest first, and the trace of a file. The chosen one stays chosen as long as it is there.
void WhatIfWindow::listTraces()
{
    const int row = traces_->currentIndex();
    const TracePtr chosen = row >= 0 ? listed_[static_cast<std::size_t>(row)] : nullptr;
    const QSignalBlocker quiet(traces_);
    traces_->clear();
    listed_.clear();
    const auto list = [this](const TracePtr& trace, const QString& title) {
        listed_.push_back(trace);
        traces_->addItem(title);
    };
    for (const KeptRun& run : workbench_.runs())
        if (!workbench_.goesOn(run)) list(run.trace, run.label);
    if (workbench_.other() && !workbench_.otherFile().isEmpty()) list(workbench_.other(), QFileInfo(workbench_.otherFile()).fileName());
    const auto again = std::find(listed_.begin(), listed_.end(), chosen);
    if (again != listed_.end()) traces_->setCurrentIndex(static_cast<int>(again - listed_.begin()));
    refresh();
}

void WhatIfWindow::predict()
{
    if (!start_->isEnabled()) return QTimer::singleShot(0, this, &WhatIfWindow::predicted); // nothing to wait for
    const TracePtr base = listed_[static_cast<std::size_t>(traces_->currentIndex())];
    const WhatIfChanges changes{schedules_->checked(), microbatches_->text().trimmed(), partition_->text().trimmed(), stageTimes_->text().trimmed()};
    problem_->say({});
    job_.start(
        [base, changes](JobControl& control) {
            Result result;
            engine::Expected<Observed> observed = engine::observe(*base);
            if (!observed.ok()) {
                result.problems << toQt(observed.error().message);
                return result;
            }
            result.observed = std::move(observed).value();
            engine::Expected<std::vector<Plan>> plans = changedPlans(result.observed->plan, changes);
            if (!plans.ok()) result.problems << toQt(plans.error().message);
            std::vector<Plan> all{result.observed->plan};
            if (plans.ok()) all.insert(all.end(), plans.value().begin(), plans.value().end());
            for (std::size_t i = 0; i < all.size() && !control.cancelled(); ++i) {
                engine::Expected<Prediction> prediction = engine::predict(*result.observed, all[i], control.stopToken());
                if (prediction.ok()) result.predictions.push_back(std::move(prediction).value());
                else result.problems << toQt(all[i].pipeline.schedule + ": " + prediction.error().message);
                if (i == 0 && !prediction.ok()) break; // nothing to hold the others against
                control.report(static_cast<double>(i + 1) / static_cast<double>(all.size()));
            }
            return result;
        },
        [this, base](Result result) { take(base, std::move(result)); });
}

void WhatIfWindow::take(const TracePtr& base, Result result)
{
    problem_->say(result.problems.join('\n'));
    rows_.clear();
    shown_.clear();
    running_.reset();
    predictions_ = std::move(result.predictions);
    observed_ = std::move(result.observed);
    base_ = base;
    if (observed_ && !predictions_.empty()) {
        rows_.push_back(engine::traceRow(*observed_, predictions_.front()));
        shown_.push_back({base, std::nullopt});
        for (std::size_t i = 0; i < predictions_.size(); ++i) {
            rows_.push_back(engine::predictedRow(*observed_, predictions_[i], i == 0 ? WhatIfKind::Same : WhatIfKind::Changed));
            shown_.push_back({std::make_shared<const traces::Trace>(predictions_[i].trace), i});
        }
    }
    table_->setTexts(whatIfTable(rows_));
    if (!rows_.empty()) table_->selectRow(static_cast<int>(std::min<std::size_t>(2, rows_.size() - 1))); // the first that is other
    showChosen();
    emit predicted();
}

// The trace, the chosen prediction, and its run below each other.
void WhatIfWindow::showChosen()
{
    const int row = table_->currentRow();
    std::vector<TraceSource> sources;
    QStringList notes;
    if (row >= 0 && !rows_.empty()) {
        const auto chosen = static_cast<std::size_t>(row);
        const auto add = [&](std::size_t i) {
            const QStringList texts = whatIfTable({rows_[i]}).back();
            const bool real = rows_[i].kind == WhatIfKind::Trace || rows_[i].kind == WhatIfKind::Performed;
            sources.push_back({.trace = shown_[i].trace,
                               .label = texts[1] + QStringLiteral(", ") + texts[0],
                               .growing = false,
                               .role = real ? SourceRole::Other : SourceRole::Simulation});
        };
        add(0);
        for (std::size_t i = 1; i < rows_.size(); ++i)
            if (i == chosen || (shown_[i].prediction && shown_[i].prediction == shown_[chosen].prediction)) add(i);
        if (observed_)
            for (const std::string& note : observed_->notes) notes << toQt(note);
        for (const std::string& note : rows_[chosen].notes) notes << toQt(note);
    }
    scene_.setSources(sources, Arrangement::Stacked);
    timeline_->fitAll();
    notes_->say(notes.join('\n'));
    refresh();
}

std::optional<std::size_t> WhatIfWindow::chosenPrediction() const
{
    const int row = table_->currentRow();
    if (row < 0 || rows_.empty() || rows_[static_cast<std::size_t>(row)].kind != WhatIfKind::Changed) return std::nullopt;
    return shown_[static_cast<std::size_t>(row)].prediction;
}

QString WhatIfWindow::whyNotRun() const
{
    if (workbench_.run().active()) return tr("A run is going on.");
    if (!chosenPrediction()) return tr("Choose a prediction of a changed plan in the table.");
    if (observed_->label != traces::TraceLabel::Measured && observed_->label != traces::TraceLabel::Emulated)
        return tr("The trace is %1, so there is no run to set beside it.").arg(toQt(traces::labelText(observed_->label)));
    const Plan& plan = predictions_[*chosenPrediction()].plan;
    if (!plan.costs.stageScale.empty() && plan.costs.stageScale != observed_->plan.costs.stageScale)
        return tr("A run takes as long as the machine takes, so the times of its stages cannot be changed.");
    return workbench_.whyNotRunnable(plan);
}

void WhatIfWindow::refresh()
{
    const bool active = workbench_.run().active();
    setCapability(*traces_, !listed_.empty(), tr("No trace is open, and no run was made."));
    setCapability(*start_, !listed_.empty() && !active && !job_.busy(),
                  active ? tr("A run is going on.") : job_.busy() ? tr("They are being predicted.") : tr("No trace is open, and no run was made."));
    const QString why = job_.busy() ? tr("They are being predicted.") : whyNotRun();
    setCapability(*run_, why.isEmpty(), why);
}

void WhatIfWindow::runChosen()
{
    if (!whyNotRun().isEmpty()) return;
    const std::size_t chosen = *chosenPrediction();
    Plan plan = predictions_[chosen].plan;
    plan.run.mode = observed_->label == traces::TraceLabel::Emulated ? engine::RunMode::Emulated : engine::RunMode::Threads;
    plan.run.steps = std::max(1, static_cast<int>(base_->steps().size()));
    workbench_.document().edit(plan, tr("what if"));
    const traces::Expected<void> started = workbench_.startRun();
    problem_->say(started.ok() ? QString() : toQt(started.error().message));
    if (started.ok()) running_ = chosen;
    refresh();
}

// A run has ended; the row of the one that was started here comes right below its prediction.
void WhatIfWindow::takeRun()
{
    if (!running_) return;
    const std::size_t ran = *std::exchange(running_, std::nullopt);
    const RunController& run = workbench_.run();
    if (!isRunOf(run.plan(), predictions_[ran].plan)) return; // another one was started meanwhile
    const engine::Expected<WhatIfRow> row = engine::performedRow(*observed_, predictions_[ran], *run.trace());
    if (!row.ok() || run.failure()) {
        problem_->say(toQt(run.failure() ? run.failure()->text : row.error().message));
        return;
    }
    const auto predictedAt = std::find_if(shown_.begin(), shown_.end(), [&](const Shown& shown) { return shown.prediction == ran; }) - shown_.begin();
    auto place = static_cast<std::size_t>(predictedAt) + 1;
    rows_[place - 1].predictionError = engine::predictionError(rows_[place - 1].step, row.value().step);
    if (place < rows_.size() && shown_[place].prediction == ran) { // it was run before
        rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(place));
        shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(place));
    }
    rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(place), row.value());
    shown_.insert(shown_.begin() + static_cast<std::ptrdiff_t>(place), {run.trace(), ran});
    table_->setTexts(whatIfTable(rows_));
    table_->selectRow(static_cast<int>(place) - 1);
    showChosen();
    emit performed();
}

} // namespace stagecraft::ui
