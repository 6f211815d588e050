// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window that sets schedules, and the trace that is open, below each other on one time axis, with a table of their figures and of
// how each differs from the first. Schedules are simulated beside the window with the plan as it was when they were asked for. Picture
// and table are exported together.
//
//   +------------+--------------------------------------+
//   | schedules  | 1F1B      ####                       |
//   |            | ZB-H1     ####                       |
//   | open trace +--------------------------------------+
//   | Compare    | figure | 1F1B | ZB-H1                |
//   +------------+--------------------------------------+
#pragma once

#include "engine/explain/survey.h"
#include "ui/bridge/background_job.h"
#include "ui/explore/comparison.h"
#include "ui/lab/form.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"
#include "ui/window/file_dialogs.h"

#include <QDialog>

#include <vector>

class QCheckBox;
class QPushButton;

namespace stagecraft::ui {

class ScheduleList;
class TextTable;
class TimelineWidget;
class Workbench;

class ComparisonWindow : public QDialog {
    Q_OBJECT
public:
    // The workbench must outlive the window.
    ComparisonWindow(Workbench& workbench, FileDialogs dialogs, QWidget* parent = nullptr);
    ~ComparisonWindow() override;

    void setTheme(const Theme& theme);
    void compare(std::vector<engine::Plan> plans); // beside the open trace where that is checked
    [[nodiscard]] const std::vector<ComparedStep>& steps() const { return steps_; }
    [[nodiscard]] const TimelineScene& scene() const { return scene_; }

public slots:
    void compareChecked(); // the schedules of the list, with the workbench's plan

signals:
    void compared();

private:
    struct Result {
        std::vector<engine::SurveyEntry> entries;
        std::vector<engine::Error> refusals;
    };
    QWidget* buildControls();
    QWidget* buildResult();
    void take(Result result);
    void addOpenTrace();
    void refresh();
    void exportPicture();

    Workbench& workbench_;
    FileDialogs dialogs_;
    Theme theme_;
    TimelineScene scene_;
    std::vector<TraceSource> sources_;
    std::vector<ComparedStep> steps_;
    ScheduleList* schedules_;
    QCheckBox* withTrace_;
    InlineNote* problem_;
    QPushButton* start_;
    QPushButton* export_;
    TimelineWidget* timeline_;
    TextTable* table_;
    BackgroundJob<Result> job_; // last: it ends before what it uses
};

} // namespace stagecraft::ui
