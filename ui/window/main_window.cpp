// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/main_window.h"

#include "ui/bridge/engine_inquiry.h"
#include "ui/bridge/text.h"
#include "ui/explore/explore_windows.h"
#include "ui/lab/form.h"
#include "ui/lab/lab_panel.h"
#include "ui/lab/run_section.h"
#include "ui/plots/loss_plot.h"
#include "ui/plots/memory_plot.h"
#include "ui/timeline/overview_strip.h"
#include "ui/timeline/timeline_legend.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/icons.h"
#include "ui/window/log_panel.h"
#include "ui/window/order_bar.h"
#include "ui/window/order_editor.h"
#include "ui/window/order_mode.h"
#include "ui/window/run_bar.h"
#include "ui/window/selection_panel.h"
#include "ui/window/statistics_panel.h"
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

namespace stagecraft::ui {

namespace {

constexpr const char* kGeometryKey = "window/geometry";
constexpr const char* kStateKey = "window/state";
constexpr const char* kCentreKey = "window/centre";
constexpr const char* kFoldedKey = "window/folded";
constexpr const char* kThemeKey = "theme";
constexpr const char* kCommandKey = "engineCommand";
constexpr int kStateVersion = 4; // of the docks; raise when they change
const QList<int> kCentreShares{3, 1}; // timeline, memory

} // namespace

MainWindow::MainWindow(QSettings& settings, const WindowOptions& options)
    : settings_(settings), programFolder_(options.programFolder), workbench_(std::make_unique<Workbench>()), docks_(*this)
{
    files_ = new FileController(*workbench_, settings_, options.dialogs.value_or(FileDialogs::ofWindow(this)), this);
    actions_ = std::make_unique<WindowActions>(*this, workbench_->document().undoStack());
    explore_ = new ExploreWindows(*workbench_, options.dialogs.value_or(FileDialogs::ofWindow(this)), *this);
    inquiry_ = new EngineInquiry(this);
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
    askEngine();
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
    banner_->setTextFormat(Qt::PlainText);
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
    statistics_ = new StatisticsPanel(*workbench_);
    labDock_ = addDock(tr("Lab"), "labDock", lab_, Qt::LeftDockWidgetArea);
    QDockWidget* selectionDock = addDock(tr("Selection"), "selectionDock", selection_, Qt::RightDockWidgetArea);
    figuresDock_ = addDock(tr("Figures of the step"), "figuresDock", figures_, Qt::RightDockWidgetArea);
    statisticsDock_ = addDock(tr("Statistics"), "statisticsDock", statistics_, Qt::RightDockWidgetArea);
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
    docks_.setPanels({labDock_, figuresDock_, statisticsDock_, selectionDock, logDock_, lossDock_, waterfallDock});
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
    for (QLabel* label : {traceLabel_, clockLabel_}) label->setTextFormat(Qt::PlainText);
    traceLabel_->setObjectName("traceLabel");
    clockLabel_->setObjectName("clockLabel");
    traceLabel_->setContentsMargins(6, 0, 6, 0);
    clockLabel_->setContentsMargins(6, 0, 6, 0);
    traceLabel_->setToolTip(tr("Where the shown traces come from."));
    clockLabel_->setToolTip(tr("The clock that their times are read from."));
    statusBar()->addPermanentWidget(traceLabel_);
    statusBar()->addPermanentWidget(clockLabel_);
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
    statistics_->setTheme(theme_);
    log_->setTheme(theme_);
    explore_->setTheme(theme_);
    actions_->setTheme(theme_);
    setWindowIcon(icon(Symbol::Program, theme_));
}

void MainWindow::chooseTheme(ThemeKind kind)
{
    setTheme(kind);
    settings_.setValue(kThemeKey, themeText(kind));
}

void MainWindow::setEngineCommand(const QString& prefix)
{
    settings_.setValue(kCommandKey, prefix);
    workbench_->run().setCommand(workerCommand(prefix, programFolder_));
    inquiry_->forget();
}

void MainWindow::askEngine() { inquiry_->ask(doctorCommand(lab_->runSection().engineCommand(), programFolder_)); }

void MainWindow::startRun()
{
    const traces::Expected<void> started = workbench_->startRun();
    if (!started.ok()) log_->problem(toQt(started.error().message));
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
