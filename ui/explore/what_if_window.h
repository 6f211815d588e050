// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window that asks a trace "what if": another schedule, number of micro-batches, partition or speed of a stage, each predicted from
// what the trace's own actions took, with how far off the prediction of the trace itself is; and the one that is chosen can be run for
// real, which tells how far off its prediction was. Predictions are made beside the window.
//
//   +-----------------+------------------------------------------+
//   | trace           | measured  ####                           |
//   | schedules       | predicted ###                            |
//   | m, layers, times+------------------------------------------+
//   | Predict         | measured | 1F1B | step | speed-up | ...   |
//   | Run it          | predicted| GPipe| ...                      |
//   +-----------------+------------------------------------------+
#pragma once

#include "engine/explain/what_if.h"
#include "ui/bridge/background_job.h"
#include "ui/explore/what_if.h"
#include "ui/lab/form.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QDialog>

#include <memory>
#include <optional>
#include <vector>

class QComboBox;
class QLineEdit;
class QPushButton;

namespace stagecraft::ui {

class ScheduleList;
class TextTable;
class TimelineWidget;
class Workbench;

class WhatIfWindow : public QDialog {
    Q_OBJECT
public:
    // The workbench must outlive the window.
    explicit WhatIfWindow(Workbench& workbench, QWidget* parent = nullptr);
    ~WhatIfWindow() override;

    void setTheme(const Theme& theme);
    [[nodiscard]] const std::vector<engine::WhatIfRow>& rows() const { return rows_; }
    [[nodiscard]] const TimelineScene& scene() const { return scene_; }

public slots:
    void predict(); // what the controls say; predicted() follows in any case
    void runChosen();

signals:
    void predicted();
    void performed(); // what was run stands in the table

private:
    using TracePtr = std::shared_ptr<const traces::Trace>;
    // What stands behind a row of the table.
    struct Shown {
        TracePtr trace;
        std::optional<std::size_t> prediction = {}; // into predictions_
    };
    struct Result {
        std::optional<engine::Observed> observed = {};
        std::vector<engine::Prediction> predictions = {}; // the first is that of the trace's own plan
        QStringList problems = {};
    };
    QWidget* buildControls();
    QWidget* buildResult();
    void listTraces();
    void take(const TracePtr& base, Result result);
    void takeRun();
    void showChosen();
    void refresh();
    [[nodiscard]] std::optional<std::size_t> chosenPrediction() const;
    [[nodiscard]] QString whyNotRun() const; // empty: the chosen one can be run

    Workbench& workbench_;
    TimelineScene scene_;
    std::vector<TracePtr> listed_; // in the order of traces_
    std::optional<engine::Observed> observed_;
    TracePtr base_; // that observed_ is of
    std::vector<engine::Prediction> predictions_;
    std::vector<engine::WhatIfRow> rows_;
    std::vector<Shown> shown_; // one for each row
    std::optional<std::size_t> running_; // the prediction that a run was started for
    QComboBox* traces_;
    ScheduleList* schedules_;
    QLineEdit* microbatches_;
    QLineEdit* partition_;
    QLineEdit* stageTimes_;
    InlineNote* problem_;
    InlineNote* notes_;
    QPushButton* start_;
    QPushButton* run_;
    TimelineWidget* timeline_;
    TextTable* table_;
    BackgroundJob<Result> job_; // last: it ends before what it uses
};

} // namespace stagecraft::ui
