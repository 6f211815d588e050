// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window shows of the state of its workbench: title, banner, figures, and what can be done now.
#include "ui/window/main_window.h"

#include "ui/bridge/text.h"
#include "ui/lab/lab_panel.h"
#include "ui/lab/run_section.h"
#include "ui/lab/trouble_box.h"
#include "ui/plots/memory_plot.h"
#include "ui/timeline/item_details.h"
#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"
#include "ui/window/run_bar.h"
#include "ui/window/selection_panel.h"
#include "ui/window/window_actions.h"

#include <QDockWidget>
#include <QLabel>

#include <utility>

namespace stagecraft::ui {

using engine::SessionState;

namespace {

// As a sentence: messages end with or without a stop of their own.
QString sentence(const QString& text) { return text.endsWith('.') || text.endsWith('?') || text.endsWith('!') ? text : text + '.'; }

} // namespace

void MainWindow::tellSelection(const TimelineItem& item)
{
    selection_->showItem(workbench_->scene(), item);
    if (!selectionStays_) docks_.showSelection(!item.none());
    if (item.none()) {
        memory_->setRank(std::nullopt);
        return;
    }
    const traces::Trace& trace = workbench_->scene().trace(item.source);
    const bool slice = item.kind == TimelineItem::Kind::Slice;
    memory_->setRank(slice ? trace.lane(item.slice.lane).info().rank : item.gap.rank);
    if (slice && workbench_->otherSource() == item.source) figures_->showStepOf(trace.slice(item.slice).step);
}

void MainWindow::showRunState()
{
    const RunController& run = workbench_->run();
    const SessionState state = run.state();
    if (engine::finished(state)) {
        log_->note(tr("Run %1: %2.").arg(toQt(engine::stateText(state)), run.label()));
        refreshFigures();
    }
    actions_->pause->setText(state == SessionState::Paused ? tr("Res&ume") : tr("&Pause"));
    actions_->stop->setText(state == SessionState::Stopping ? tr("Force &stop") : tr("&Stop"));
    refreshActions();
}

void MainWindow::showFileWork()
{
    if (files_->busy() != fileWork_) {
        fileWork_ = files_->busy();
        refreshActions();
        // queued: how the writing ended is told after that it did
        if (!fileWork_ && std::exchange(closesWhenWritten_, false))
            QMetaObject::invokeMethod(this, [this] {
                closesWhenWritten_ = files_->busy(); // the next run's
                if (!closesWhenWritten_ && workbench_->unsavedRuns().empty()) close();
            }, Qt::QueuedConnection);
    }
    runBar_->refresh();
}

void MainWindow::refreshFigures()
{
    figures_->refresh();
    // Until the plan's own simulation is there, the simulated column is another plan's.
    const SimulationController& simulation = workbench_->simulation();
    const bool outdated = simulation.simulation().trace && (simulation.busy() || !simulation.problem().isEmpty());
    figuresDock_->setWindowTitle(outdated ? tr("Figures of the step (simulated: the plan before)") : tr("Figures of the step"));
    QStringList labels;
    QStringList clocks;
    for (const TraceSource& source : workbench_->scene().sources()) {
        const QString label = toQt(traces::labelText(source.trace->info.label));
        labels << (labels.contains(label) ? tr("%1 (%2)").arg(label, workbench_->otherWord()) : label);
        const QString clock = toQt(traces::clockText(source.trace->info.clock));
        if (!clocks.contains(clock)) clocks << clock;
    }
    traceLabel_->setText(labels.join(QStringLiteral(" + ")));
    clockLabel_->setText(clocks.isEmpty() ? QString() : tr("clock: %1").arg(clocks.join(QStringLiteral(", "))));
}

void MainWindow::refreshActions()
{
    const Workbench& bench = *workbench_;
    const RunController& run = bench.run();
    const QString& obstacle = bench.whyNotRunnable();
    WindowActions::setAvailable(*actions_->run, !run.active() && obstacle.isEmpty(), run.active() ? tr("A run is going on.") : obstacle);
    const bool mayPause = run.state() == SessionState::Running || run.state() == SessionState::Paused;
    WindowActions::setAvailable(*actions_->pause, mayPause, tr("Nothing runs that could be paused."));
    WindowActions::setAvailable(*actions_->stop, run.active(), tr("Nothing runs."));
    lab_->runSection().trouble().setRunning(mayPause);
    const traces::Expected<engine::Plan> tracePlan = bench.tracePlan();
    WindowActions::setAvailable(*actions_->useTracePlan, tracePlan.ok(), tracePlan.ok() ? QString() : toQt(tracePlan.error().message));
    const QString noCosts = bench.whyNoMeasuredCosts();
    WindowActions::setAvailable(*actions_->useMeasured, noCosts.isEmpty(), noCosts);
    WindowActions::setAvailable(*actions_->cancelWork, bench.simulation().busy() || files_->busy(),
                                tr("No simulation is at work, and no file is read or written."));
    const QString atWork = files_->busy() ? tr("%1: wait for it, or cancel it.").arg(files_->doing()) : QString();
    for (QAction* action : {actions_->exportShown, actions_->exportWhole, actions_->exportTrace})
        WindowActions::setAvailable(*action, !files_->busy(), atWork);
    WindowActions::setAvailable(*actions_->openTrace, !files_->busy() && !run.active(), run.active() ? tr("A run is going on.") : atWork);
    WindowActions::setAvailable(*actions_->follow, bench.scene().growing(), tr("No run adds to the timeline."));
    WindowActions::setAvailable(*actions_->closeTrace, bench.other() && !run.active(), tr("There is no trace beside the simulated one, or it still grows."));
    actions_->nameViews(bench.otherWord());
    for (QAction* view : actions_->views->actions()) {
        view->setChecked(view->data().toInt() == static_cast<int>(bench.view()));
        WindowActions::setAvailable(*view, bench.other() != nullptr, tr("There is only the simulated trace."));
    }
    runBar_->refresh();
}

void MainWindow::showTitle()
{
    setWindowTitle(tr("%1[*] – Stagecraft").arg(workbench_->document().title()));
    setWindowModified(workbench_->document().modified());
}

void MainWindow::showProblem()
{
    const QString& problem = workbench_->simulation().problem();
    const std::vector<engine::WaitingRank>& deadlock = workbench_->simulation().simulation().deadlock;
    QString text;
    if (!problem.isEmpty()) {
        text = sentence(tr("Not simulated: %1").arg(problem));
        if (workbench_->simulation().simulation().trace && workbench_->simulatedSource()) text += ' ' + tr("The timeline shows the last plan that could be.");
    } else if (!deadlock.empty()) {
        text = deadlockText(deadlock) + ' ' + tr("The timeline shows what runs before.");
    }
    banner_->setText(text);
    banner_->setVisible(!text.isEmpty());
    refreshFigures();
    refreshActions();
}

} // namespace stagecraft::ui
