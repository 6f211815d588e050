// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window's parts tell each other: actions, the workbench, the views of one time axis.
#include "ui/window/main_window.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/engine_inquiry.h"
#include "ui/bridge/text.h"
#include "ui/explore/explore_windows.h"
#include "ui/lab/lab_panel.h"
#include "ui/lab/run_section.h"
#include "ui/lab/trouble_box.h"
#include "ui/plots/loss_plot.h"
#include "ui/plots/memory_plot.h"
#include "ui/timeline/item_details.h"
#include "ui/timeline/overview_strip.h"
#include "ui/timeline/timeline_legend.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/about_dialog.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"
#include "ui/window/run_bar.h"
#include "ui/window/selection_panel.h"
#include "ui/window/statistics_panel.h"
#include "ui/window/waterfall_panel.h"
#include "ui/window/window_actions.h"

#include <QApplication>
#include <QCheckBox>
#include <QDockWidget>
#include <QScopedValueRollback>
#include <QStatusBar>

namespace stagecraft::ui {

using engine::SessionState;

void MainWindow::connectActions()
{
    const auto on = [this](QAction* action, auto&& work) { connect(action, &QAction::triggered, this, work); };
    on(actions_->open, [this] { files_->openPlan(); });
    on(actions_->save, [this] { files_->save(); });
    on(actions_->saveAs, [this] { files_->saveAs(); });
    on(actions_->openTrace, [this] { files_->openTrace(); });
    on(actions_->closeTrace, [this] { workbench_->closeOther(); });
    on(actions_->exportShown, [this] { files_->exportPicture(PictureExtent::AsShown, theme_, timeline_->shown()); });
    on(actions_->exportWhole, [this] { files_->exportPicture(PictureExtent::Whole, theme_, timeline_->shown()); });
    on(actions_->exportTrace, [this] { files_->exportTrace(); });
    on(actions_->quit, [this] { close(); });
    connect(actions_->views, &QActionGroup::triggered, this,
            [this](const QAction* action) { workbench_->setView(static_cast<ViewKind>(action->data().toInt())); });
    TimeAxis& axis = workbench_->scene().axis();
    const auto zoom = [&axis](double factor) {
        const TimeRange& range = axis.range();
        axis.zoom(factor, range.first() + (range.last() - range.first()) / 2);
    };
    on(actions_->find, [this] { timeline_->openSearch(); });
    on(actions_->findNext, [this] { timeline_->findNext(); });
    on(actions_->findPrevious, [this] { timeline_->findPrevious(); });
    on(actions_->fitAll, [this] { timeline_->fitAll(); });
    on(actions_->zoomIn, [zoom] { zoom(1 / 1.5); });
    on(actions_->zoomOut, [zoom] { zoom(1.5); });
    on(actions_->back, [&axis] { axis.back(); });
    on(actions_->forward, [&axis] { axis.forward(); });
    connect(actions_->follow, &QAction::toggled, timeline_, &TimelineWidget::setFollowing);
    on(actions_->light, [this] { chooseTheme(ThemeKind::Light); });
    on(actions_->dark, [this] { chooseTheme(ThemeKind::Dark); });
    on(actions_->resetLayout, [this] { arrangeDocks(); });
    on(actions_->statistics, [this] {
        statisticsDock_->show();
        statisticsDock_->raise(); // out of the tabs behind
        statistics_->focusTable();
    });
    on(actions_->gallery, [this] { explore_->showGallery(); });
    on(actions_->curves, [this] { explore_->showCurves(); });
    on(actions_->comparison, [this] { explore_->showComparison(); });
    on(actions_->whatIf, [this] { explore_->showWhatIf(); });
    on(actions_->run, [this] { startRun(); });
    on(actions_->pause, [this] {
        RunController& run = workbench_->run();
        if (run.state() == SessionState::Paused) run.resume();
        else run.pause();
    });
    on(actions_->stop, [this] { workbench_->run().stop(); });
    on(actions_->useMeasured, [this] {
        const traces::Expected<void> done = workbench_->useMeasuredCosts();
        if (!done.ok()) log_->problem(toQt(done.error().message));
    });
    on(actions_->useTracePlan, [this] {
        const traces::Expected<void> done = workbench_->useTracePlan();
        if (!done.ok()) log_->problem(toQt(done.error().message));
    });
    on(actions_->cancelWork, [this] {
        workbench_->simulation().cancel();
        files_->cancel();
    });
    on(actions_->engineCommand, [this] {
        labDock_->show();
        labDock_->raise(); // out of the tabs behind
        auto* field = lab_->findChild<QWidget*>("engineCommand");
        lab_->ensureWidgetVisible(field);
        field->setFocus(Qt::ShortcutFocusReason);
    });
    on(actions_->keyboard, [this] {
        KeyboardHelp help(actions_->keys(), this);
        help.exec();
    });
    on(actions_->about, [this] { showAbout(this); });
    on(actions_->aboutQt, [] { QApplication::aboutQt(); });
    connect(lab_, &LabPanel::scheduleFileWanted, files_, &FileController::openSchedule);
    connect(problemsOnly_, &QCheckBox::toggled, log_, &LogPanel::setProblemsOnly);
    connect(lab_, &LabPanel::presetChosen, this, [this](const QString& name) {
        if (!files_->startFromPreset(name)) emit workbench_->document().changed(); // the box goes back to what is
    });
    connect(&lab_->runSection(), &RunSection::engineCommandEdited, this, &MainWindow::setEngineCommand);
    connect(&lab_->runSection(), &RunSection::engineCommandEntered, this, &MainWindow::askEngine);
    connect(inquiry_, &EngineInquiry::told, this, [this] { lab_->runSection().setEngineMachine(inquiry_->machine()); });
    // Its own: a window that goes loses its focus, and then the engine is asked once more, without a workbench.
    connect(inquiry_, &EngineInquiry::told, workbench_.get(), [this] { workbench_->setEngineMachine(inquiry_->machine()); });
    connect(workbench_.get(), &Workbench::runnableChanged, this, &MainWindow::refreshActions);
    connect(&lab_->runSection().trouble(), &TroubleBox::asked, this, [this](const engine::StageTrouble& trouble) { workbench_->run().trouble(trouble); });
}

namespace {

// Beside the run that begins: short, for it stands over a small plot.
QString nameOf(const engine::Plan& plan, const engine::Plan& now)
{
    const QString schedule = toQt(plan.pipeline.schedule);
    return plan.pipeline.ranks == now.pipeline.ranks ? schedule : MainWindow::tr("%1, p = %2").arg(schedule).arg(plan.pipeline.ranks);
}

// Those of the kept runs that trained the same model on the same data as the one that begins.
std::vector<LossPlot::EarlierRun> earlierRuns(const Workbench& bench)
{
    const engine::Plan& now = bench.run().plan();
    std::vector<LossPlot::EarlierRun> earlier;
    for (const KeptRun& run : bench.runs()) {
        if (run.trace == bench.run().trace()) continue;
        const traces::Expected<engine::Plan> plan = engine::readPlan(run.trace->info.planJson);
        if (plan.ok() && plan.value().model == now.model && plan.value().data == now.data) earlier.push_back({nameOf(plan.value(), now), run.trace});
    }
    return earlier;
}

} // namespace

void MainWindow::connectWorkbench()
{
    Workbench& bench = *workbench_;
    RunController& run = bench.run();
    connect(&bench.document(), &PlanDocument::titleChanged, this, &MainWindow::showTitle);
    connect(&bench.document(), &PlanDocument::changed, this, &MainWindow::refreshActions);
    connect(&bench.document(), &PlanDocument::changed, this, &MainWindow::refreshFigures);
    connect(&bench.simulation(), &SimulationController::changed, this, &MainWindow::showProblem);
    connect(&bench.simulation(), &SimulationController::problemChanged, this, &MainWindow::showProblem);
    connect(&bench.simulation(), &SimulationController::busyChanged, this, &MainWindow::refreshActions);
    connect(&bench.simulation(), &SimulationController::busyChanged, this, &MainWindow::refreshFigures); // marks them as old
    connect(&bench, &Workbench::viewChanged, this, &MainWindow::refreshActions);
    connect(&bench, &Workbench::viewChanged, this, &MainWindow::refreshFigures);
    connect(&bench, &Workbench::otherChanged, this, &MainWindow::refreshActions);
    connect(&bench, &Workbench::otherChanged, this, &MainWindow::refreshFigures);
    connect(&bench, &Workbench::runDropped, this, [this](const QString& label) {
        log_->note(tr("No longer kept, for only the last %1 runs are: %2.").arg(Workbench::kMostRuns).arg(label));
    });
    connect(&bench.scene(), &TimelineScene::sourcesChanged, this, &MainWindow::refreshFigures);

    connect(&run, &RunController::started, this, [this] {
        stepsSeen_ = 0;
        loss_->setTrace(*workbench_->run().trace());
        loss_->setEarlier(nameOf(workbench_->run().plan(), workbench_->run().plan()), earlierRuns(*workbench_));
        timeline_->setFollowing(true);
        lab_->runSection().trouble().beginRun(workbench_->run().plan());
    });
    connect(&run, &RunController::grew, this, [this] {
        if (workbench_->run().finishedSteps() == stepsSeen_) return;
        stepsSeen_ = workbench_->run().finishedSteps();
        loss_->setTrace(*workbench_->run().trace());
        if (workbench_->run().lastLoss()) lossDock_->show();
        refreshFigures();
        runBar_->refresh();
    });
    connect(&run, &RunController::progressed, runBar_, &RunBar::refresh);
    connect(&run, &RunController::stateChanged, this, &MainWindow::showRunState);
    connect(&run, &RunController::resulted, this, [this] {
        refreshActions();
        refreshFigures();
    });
    connect(&run, &RunController::failed, log_, &LogPanel::problem);
    connect(&run, &RunController::warning, log_, &LogPanel::warn);
    connect(&run, &RunController::note, log_, &LogPanel::note);
    connect(files_, &FileController::note, log_, &LogPanel::note);
    connect(files_, &FileController::warning, log_, &LogPanel::warn);
    connect(files_, &FileController::problem, log_, &LogPanel::problem);
    connect(files_, &FileController::workChanged, this, &MainWindow::showFileWork);
    connect(log_, &LogPanel::problemsChanged, this,
            [this](int count) { logDock_->setWindowTitle(tr("Problems and log (%1)").arg(count)); });
}

void MainWindow::connectTimeline()
{
    memory_->setMargins(timeline_->headerWidth(), timeline_->rightMargin());
    overview_->setMargins(timeline_->headerWidth(), timeline_->rightMargin());
    // A click leads to the timeline's keys. Not by a focus proxy: Tab would turn back at the plots to the timeline.
    const auto toTimeline = [this] { timeline_->setFocus(Qt::MouseFocusReason); };
    connect(memory_, &MemoryPlot::pressed, timeline_, toTimeline);
    connect(loss_, &LossPlot::pressed, timeline_, toTimeline);
    connect(waterfall_, &WaterfallPanel::pressed, timeline_, toTimeline);
    connect(statistics_, &StatisticsPanel::pressed, timeline_, toTimeline);
    connect(statistics_, &StatisticsPanel::wanted, this, [this](const TimelineItem& item) {
        const QScopedValueRollback stays(selectionStays_, true);
        timeline_->goTo(item);
    });
    connect(timeline_, &TimelineWidget::criticalPathChanged, this, [this](bool shown) {
        actions_->criticalPath->setChecked(shown);
        legend_->setCriticalPath(shown);
    });
    connect(actions_->criticalPath, &QAction::toggled, timeline_, &TimelineWidget::setCriticalPath);
    connect(timeline_, &TimelineWidget::hoverTimeChanged, memory_, &MemoryPlot::setHoverTime);
    connect(memory_, &MemoryPlot::hoverTimeChanged, timeline_, &TimelineWidget::setHoverTime);
    connect(timeline_, &TimelineWidget::followingChanged, actions_->follow, &QAction::setChecked);
    connect(timeline_, &TimelineWidget::selectionChanged, this, &MainWindow::tellSelection);
    connect(timeline_, &TimelineWidget::selectionGrew, this, [this](const TimelineItem& item) { selection_->showItem(workbench_->scene(), item); });
    connect(selection_, &SelectionPanel::wanted, timeline_, &TimelineWidget::goTo);
    connect(timeline_, &TimelineWidget::measurementChanged, this, [this](const std::optional<traces::Interval>& span) {
        statusBar()->showMessage(span ? tr("measured: %1").arg(toQt(traces::formatDuration(span->length()))) : QString());
    });
    connect(&workbench_->scene().axis(), &TimeAxis::historyChanged, this, [this] {
        actions_->back->setEnabled(workbench_->scene().axis().canGoBack());
        actions_->forward->setEnabled(workbench_->scene().axis().canGoForward());
    });
}

} // namespace stagecraft::ui
