// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/main_window.h"

#include "ui/bridge/text.h"
#include "ui/explore/explore_windows.h"
#include "ui/lab/form.h"
#include "ui/lab/lab_panel.h"
#include "ui/lab/run_section.h"
#include "ui/plots/loss_plot.h"
#include "ui/plots/memory_plot.h"
#include "ui/timeline/item_details.h"
#include "ui/timeline/overview_strip.h"
#include "ui/timeline/timeline_legend.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/about_dialog.h"
#include "ui/window/figures_panel.h"
#include "ui/window/icons.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"
#include "ui/window/order_bar.h"
#include "ui/window/order_editor.h"
#include "ui/window/order_mode.h"
#include "ui/window/run_bar.h"
#include "ui/window/selection_panel.h"
#include "ui/window/waterfall_panel.h"
#include "ui/window/window_actions.h"
#include "ui/window/window_menus.h"
#include "ui/window/window_style.h"

#include <QApplication>
#include <QCheckBox>
#include <QCloseEvent>
#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QResizeEvent>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>
#include <QVBoxLayout>

#include <utility>

namespace stagecraft::ui {

using engine::SessionState;

namespace {

constexpr const char* kGeometryKey = "window/geometry";
constexpr const char* kStateKey = "window/state";
constexpr const char* kCentreKey = "window/centre";
constexpr const char* kFoldedKey = "window/folded";
constexpr const char* kThemeKey = "theme";
constexpr const char* kCommandKey = "engineCommand";
constexpr int kStateVersion = 3; // of the docks; raise when they change
const QList<int> kCentreShares{3, 1}; // timeline, memory

// As a sentence: messages end with or without a stop of their own.
QString sentence(const QString& text) { return text.endsWith('.') || text.endsWith('?') || text.endsWith('!') ? text : text + '.'; }

} // namespace

MainWindow::MainWindow(QSettings& settings, const WindowOptions& options)
    : settings_(settings), programFolder_(options.programFolder), workbench_(std::make_unique<Workbench>()), docks_(*this)
{
    files_ = new FileController(*workbench_, settings_, options.dialogs.value_or(FileDialogs::ofWindow(this)), this);
    actions_ = std::make_unique<WindowActions>(*this, workbench_->document().undoStack());
    explore_ = new ExploreWindows(*workbench_, options.dialogs.value_or(FileDialogs::ofWindow(this)), *this);
    setObjectName("mainWindow");

    runBar_ = new RunBar(*workbench_, *files_, *actions_);
    addToolBar(Qt::TopToolBarArea, runBar_);
    setCentralWidget(buildCentre());
    buildDocks();
    buildStatusBar();
    new WindowMenus(*actions_, *files_, *workbench_, this);
    connectActions();
    connectWorkbench();
    connectTimeline();
    new OrderMode({*timeline_, *order_, *orderBar_, *actions_, *files_, *log_, workbench_->document()}, this);

    const bool darkKept = settings_.value(kThemeKey).toString() == themeText(ThemeKind::Dark);
    setTheme(options.theme.value_or(darkKept ? ThemeKind::Dark : ThemeKind::Light));
    lab_->runSection().setEngineCommand(settings_.value(kCommandKey).toString());
    setEngineCommand(lab_->runSection().engineCommand());
    restore();
    showTitle();
    refreshActions();
}

MainWindow::~MainWindow() = default;

QWidget* MainWindow::buildCentre()
{
    TimelineScene& scene = workbench_->scene();
    overview_ = new OverviewStrip(scene);
    timeline_ = new TimelineWidget(scene);
    timeline_->setObjectName("timeline");
    timeline_->setEmptyText(tr("Nothing to show yet"),
                            tr("Choose a plan under Lab on the left, or open one with Ctrl+O: its simulated timeline appears here. "
                               "Ctrl+T opens a trace that was written earlier. Why a plan has no timeline stands in the lab and in the log."));
    legend_ = new TimelineLegend(scene);
    legend_->setLeftMargin(timeline_->headerWidth());
    memory_ = new MemoryPlot(scene);
    memory_->setMinimumHeight(130); // below it the curves cannot be told apart
    banner_ = new QLabel;
    banner_->setObjectName("banner");
    banner_->setProperty("tone", "banner");
    banner_->setWordWrap(true);
    banner_->hide();

    order_ = new OrderEditor(*workbench_, this);
    orderBar_ = new OrderBar(*order_);
    orderBar_->hide();

    centre_ = new QSplitter(Qt::Vertical);
    centre_->setObjectName("centreSplitter");
    centre_->addWidget(timeline_);
    centre_->addWidget(memory_);
    for (int i = 0; i < kCentreShares.size(); ++i) centre_->setStretchFactor(i, kCentreShares[i]);
    centre_->setChildrenCollapsible(false);
    auto* centre = new QWidget;
    auto* layout = new QVBoxLayout(centre);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(banner_);
    layout->addWidget(overview_);
    layout->addWidget(legend_);
    layout->addWidget(orderBar_);
    layout->addWidget(centre_, 1);
    return centre;
}

QDockWidget* MainWindow::addDock(const QString& title, const char* name, QWidget* content, Qt::DockWidgetArea area)
{
    QDockWidget* dock = docks_.add(title, name, content, area);
    WindowActions::explain(*dock->toggleViewAction(), tr("Shows or hides this panel."));
    actions_->panelMenu->addAction(dock->toggleViewAction());
    return dock;
}

void MainWindow::buildDocks()
{
    lab_ = new LabPanel(workbench_->document());
    selection_ = new SelectionPanel;
    figures_ = new FiguresPanel(*workbench_);
    log_ = new LogPanel;
    loss_ = new LossPlot;
    waterfall_ = new WaterfallPanel(*workbench_);
    labDock_ = addDock(tr("Lab"), "labDock", lab_, Qt::LeftDockWidgetArea);
    QDockWidget* selectionDock = addDock(tr("Selection"), "selectionDock", selection_, Qt::RightDockWidgetArea);
    figuresDock_ = addDock(tr("Figures of the step"), "figuresDock", figures_, Qt::RightDockWidgetArea);
    problemsOnly_ = new QCheckBox(tr("Problems only"));
    problemsOnly_->setObjectName("problemsOnly");
    describe(*problemsOnly_, tr("Problems only"), tr("Shows what went wrong alone, without the notes that came after."));
    auto* logBox = new QWidget;
    auto* logLayout = new QHBoxLayout(logBox);
    logLayout->setContentsMargins(0, 0, 6, 0);
    logLayout->addWidget(log_, 1);
    logLayout->addWidget(problemsOnly_, 0, Qt::AlignTop);
    logDock_ = addDock(tr("Problems and log"), "logDock", logBox, Qt::BottomDockWidgetArea);
    lossDock_ = addDock(tr("Loss"), "lossDock", loss_, Qt::BottomDockWidgetArea);
    connect(loss_, &LossPlot::titleChanged, lossDock_, &QDockWidget::setWindowTitle);
    QDockWidget* waterfallDock = addDock(tr("Where the step went"), "waterfallDock", waterfall_, Qt::BottomDockWidgetArea);
    docks_.setPanels({labDock_, figuresDock_, selectionDock, logDock_, lossDock_, waterfallDock});
    arrangeDocks();
}

void MainWindow::arrangeDocks()
{
    docks_.arrange();
    lossDock_->setVisible(workbench_->run().lastLoss().has_value()); // comes with the first loss
    lab_->setFoldedSections(LabPanel::foldedAtFirst());
    QList<int> heights;
    for (const int share : kCentreShares) heights << share * centre_->height();
    centre_->setSizes(heights); // they are made to fit
}

void MainWindow::resizeEvent(QResizeEvent* event)
{
    QMainWindow::resizeEvent(event);
    const bool restored = !event->oldSize().isValid() && settings_.contains(kStateKey);
    if (figuresDock_ && !restored) docks_.widthChanged(event->oldSize().width(), event->size().width());
}

void MainWindow::buildStatusBar()
{
    traceLabel_ = new QLabel;
    clockLabel_ = new QLabel;
    traceLabel_->setObjectName("traceLabel");
    clockLabel_->setObjectName("clockLabel");
    traceLabel_->setContentsMargins(6, 0, 6, 0);
    clockLabel_->setContentsMargins(6, 0, 6, 0);
    traceLabel_->setToolTip(tr("Where the shown traces come from."));
    clockLabel_->setToolTip(tr("The clock that their times are read from."));
    statusBar()->addPermanentWidget(traceLabel_);
    statusBar()->addPermanentWidget(clockLabel_);
}

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
    const auto choose = [this](ThemeKind kind) { // a theme of the command line is for once, this one for good
        setTheme(kind);
        settings_.setValue(kThemeKey, themeText(kind));
    };
    on(actions_->light, [choose] { choose(ThemeKind::Light); });
    on(actions_->dark, [choose] { choose(ThemeKind::Dark); });
    on(actions_->resetLayout, [this] { arrangeDocks(); });
    on(actions_->gallery, [this] { explore_->showGallery(); });
    on(actions_->curves, [this] { explore_->showCurves(); });
    on(actions_->comparison, [this] { explore_->showComparison(); });
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
}

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
        timeline_->setFollowing(true);
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
    connect(timeline_, &TimelineWidget::criticalPathChanged, this, [this](bool shown) {
        actions_->criticalPath->setChecked(shown);
        legend_->setCriticalPath(shown);
    });
    connect(actions_->criticalPath, &QAction::toggled, timeline_, &TimelineWidget::setCriticalPath);
    connect(timeline_, &TimelineWidget::hoverTimeChanged, memory_, &MemoryPlot::setHoverTime);
    connect(memory_, &MemoryPlot::hoverTimeChanged, timeline_, &TimelineWidget::setHoverTime);
    connect(timeline_, &TimelineWidget::followingChanged, actions_->follow, &QAction::setChecked);
    connect(timeline_, &TimelineWidget::selectionChanged, this, &MainWindow::tellSelection);
    connect(timeline_, &TimelineWidget::selectionGrew, this, [this](const TimelineItem& item) { selection_->showDetails(detailsOf(workbench_->scene(), item)); });
    connect(timeline_, &TimelineWidget::measurementChanged, this, [this](const std::optional<traces::Interval>& span) {
        statusBar()->showMessage(span ? tr("measured: %1").arg(toQt(traces::formatDuration(span->length()))) : QString());
    });
    connect(&workbench_->scene().axis(), &TimeAxis::historyChanged, this, [this] {
        actions_->back->setEnabled(workbench_->scene().axis().canGoBack());
        actions_->forward->setEnabled(workbench_->scene().axis().canGoForward());
    });
}

void MainWindow::tellSelection(const TimelineItem& item)
{
    selection_->showDetails(detailsOf(workbench_->scene(), item));
    docks_.showSelection(!item.none());
    if (item.none()) {
        memory_->setRank(std::nullopt);
        return;
    }
    const traces::Trace& trace = workbench_->scene().trace(item.source);
    const bool slice = item.kind == TimelineItem::Kind::Slice;
    memory_->setRank(slice ? trace.lane(item.slice.lane).info().rank : item.gap.rank);
    if (slice && workbench_->otherSource() == item.source) figures_->showStepOf(trace.slice(item.slice).step);
}

void MainWindow::setTheme(ThemeKind kind)
{
    theme_ = Theme::of(kind);
    applyTheme(*qApp, theme_);
    setStyleSheet(windowStyle(theme_));
    overview_->setTheme(theme_);
    legend_->setTheme(theme_);
    timeline_->setTheme(theme_);
    memory_->setTheme(theme_);
    loss_->setTheme(theme_);
    waterfall_->setTheme(theme_);
    log_->setTheme(theme_);
    explore_->setTheme(theme_);
    actions_->setTheme(theme_);
    setWindowIcon(icon(Symbol::Program, theme_));
}

void MainWindow::setEngineCommand(const QString& prefix)
{
    settings_.setValue(kCommandKey, prefix);
    workbench_->run().setCommand(workerCommand(prefix, programFolder_));
}

void MainWindow::startRun()
{
    const traces::Expected<void> started = workbench_->startRun();
    if (!started.ok()) log_->problem(toQt(started.error().message));
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

void MainWindow::restore()
{
    const QByteArray geometry = settings_.value(kGeometryKey).toByteArray();
    if (geometry.isEmpty() || !restoreGeometry(geometry)) resize(1280, 800);
    const QByteArray state = settings_.value(kStateKey).toByteArray();
    if (!state.isEmpty()) restoreState(state, kStateVersion);
    const QByteArray centre = settings_.value(kCentreKey).toByteArray();
    if (!centre.isEmpty()) centre_->restoreState(centre);
    lab_->setFoldedSections(settings_.value(kFoldedKey, LabPanel::foldedAtFirst()).toStringList());
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    const FileController::Quit quit = files_->mayQuit();
    closesWhenWritten_ = quit == FileController::Quit::WhenWritten;
    if (quit != FileController::Quit::Yes) {
        event->ignore();
        return;
    }
    settings_.setValue(kGeometryKey, saveGeometry());
    settings_.setValue(kStateKey, saveState(kStateVersion));
    settings_.setValue(kCentreKey, centre_->saveState());
    settings_.setValue(kFoldedKey, lab_->foldedSections());
    workbench_->run().session().shutDown(); // ends beside the last events of the window; the destructor waits for it
    event->accept();
}

} // namespace stagecraft::ui
