// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window: builds the panels and connects them to the workbench. What they show and do is in their own classes.
//
//   +------+---------------------------------+-----------+
//   | run bar                                            |
//   +------+---------------------------------+-----------+
//   | lab  | overview                        | figures, statistics
//   |      | timeline                        |           |
//   |      | memory                          | selection |
//   +------+---------------------------------+-----------+
//   | problems and log                  | loss           |
//   +------+---------------------------------+-----------+
//
// On a narrow screen panels share one place as tabs (DockLayout). Closing it during a run ends the engine; it asks once
// about what would be lost, changes of the plan and the runs that no file has.
#pragma once

#include "ui/theme/theme.h"
#include "ui/window/dock_layout.h"
#include "ui/window/file_controller.h"
#include "ui/window/workbench.h"

#include <QMainWindow>

#include <memory>
#include <optional>

class QCheckBox;
class QDockWidget;
class QSettings;
class QLabel;
class QSplitter;

namespace stagecraft::ui {

class EngineInquiry;
class ExploreWindows;
class FiguresPanel;
class LabPanel;
class LogPanel;
class LossPlot;
class MemoryPlot;
class OrderBar;
class OrderEditor;
class OverviewStrip;
class RunBar;
class SelectionPanel;
class StatisticsPanel;
class TimelineLegend;
class TimelineWidget;
class WaterfallPanel;
struct WindowActions;

struct WindowOptions {
    QString programFolder;                // where stagecraft-cli lies
    std::optional<ThemeKind> theme;       // else the settings', else light
    std::optional<FileDialogs> dialogs;   // else real ones
};

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    // The settings must outlive the window.
    MainWindow(QSettings& settings, const WindowOptions& options);
    ~MainWindow() override;

    [[nodiscard]] Workbench& workbench() { return *workbench_; }
    [[nodiscard]] FileController& files() { return *files_; }
    [[nodiscard]] WindowActions& actions() { return *actions_; }
    [[nodiscard]] TimelineWidget& timeline() { return *timeline_; }
    [[nodiscard]] LogPanel& log() { return *log_; }
    [[nodiscard]] FiguresPanel& figures() { return *figures_; }
    [[nodiscard]] ExploreWindows& explore() { return *explore_; }
    [[nodiscard]] MemoryPlot& memory() { return *memory_; }
    [[nodiscard]] WaterfallPanel& waterfall() { return *waterfall_; }
    [[nodiscard]] StatisticsPanel& statistics() { return *statistics_; }
    [[nodiscard]] OrderEditor& order() { return *order_; }
    [[nodiscard]] EngineInquiry& engineInquiry() { return *inquiry_; }
    [[nodiscard]] const Theme& theme() const { return theme_; }

    void setTheme(ThemeKind kind);
    void startRun();

protected:
    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* buildCentre();
    QDockWidget* addDock(const QString& title, const char* name, QWidget* content, Qt::DockWidgetArea area);
    void buildDocks();
    void buildStatusBar();
    void arrangeDocks();
    void connectActions();
    void connectWorkbench();
    void connectTimeline();
    void restore();

    void showTitle();
    void showProblem();
    void showRunState();
    void showFileWork();
    void refreshFigures();
    void refreshActions();
    void setEngineCommand(const QString& prefix);
    void askEngine(); // what its machine has
    void chooseTheme(ThemeKind kind); // one of the command line is for once, this one for good
    void tellSelection(const TimelineItem& item);

    QSettings& settings_;
    QString programFolder_;
    Theme theme_;
    std::unique_ptr<Workbench> workbench_;
    FileController* files_ = nullptr;
    std::unique_ptr<WindowActions> actions_;
    ExploreWindows* explore_ = nullptr;
    EngineInquiry* inquiry_ = nullptr;

    DockLayout docks_;
    RunBar* runBar_ = nullptr;
    LabPanel* lab_ = nullptr;
    OverviewStrip* overview_ = nullptr;
    TimelineLegend* legend_ = nullptr;
    TimelineWidget* timeline_ = nullptr;
    MemoryPlot* memory_ = nullptr;
    QSplitter* centre_ = nullptr; // timeline above memory
    QLabel* banner_ = nullptr;
    SelectionPanel* selection_ = nullptr;
    FiguresPanel* figures_ = nullptr;
    LogPanel* log_ = nullptr;
    LossPlot* loss_ = nullptr;
    WaterfallPanel* waterfall_ = nullptr;
    StatisticsPanel* statistics_ = nullptr;
    OrderEditor* order_ = nullptr;
    OrderBar* orderBar_ = nullptr;
    QDockWidget* labDock_ = nullptr;
    QDockWidget* figuresDock_ = nullptr;
    QDockWidget* logDock_ = nullptr;
    QDockWidget* lossDock_ = nullptr;
    QDockWidget* statisticsDock_ = nullptr;
    QLabel* traceLabel_ = nullptr;
    QLabel* clockLabel_ = nullptr;
    QCheckBox* problemsOnly_ = nullptr;
    bool closesWhenWritten_ = false; // runs are being written, to be closed after
    int stepsSeen_ = 0; // of the run, to do things once a step
    bool fileWork_ = false; // as the actions know it
    bool selectionStays_ = false; // where it is: what selects has its own panel in front
};

} // namespace stagecraft::ui
