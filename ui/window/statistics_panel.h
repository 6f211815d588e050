// SPDX-License-Identifier: GPL-3.0-or-later
//
// How long the actions of a trace took: a table by stage and kind, a histogram of the chosen row, and what took far longer than its like,
// each of which leads to its block on the timeline; below, of a trace with kernels, where the blocks' time went on the devices. The same figures as `stagecraft-cli analyze` prints, over all steps that count.
//
//   +------------------------+
//   | Trace  [measured    ]  |
//   | Of   n   Median ...    |
//   | 0F   8   51.2 ms       |
//   +------------------------+
//   |     histogram          |
//   +------------------------+
//   | Far out: 2             |
//   | 0F3, step 2: 80 ms ... |
//   +------------------------+
//   | On the devices         |
//   | 0  91.2 %  0.3 % ...   |
//   +------------------------+
//
// Worked out beside the window, and only while the panel is seen; of a run that goes on now and then from a copy.
#pragma once

#include "traces/analysis/device_time.h"
#include "traces/analysis/durations.h"
#include "ui/bridge/background_job.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_item.h"
#include "ui/timeline/trace_source.h"

#include <QElapsedTimer>
#include <QStringList>
#include <QTimer>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

class QComboBox;
class QLabel;
class QListWidget;
class QSortFilterProxyModel;
class QTableView;

namespace stagecraft::ui {

class DurationHistogram;
class StatisticsModel;
class TextTable;
class Workbench;

class StatisticsPanel : public QWidget {
    Q_OBJECT
public:
    static constexpr int kLiveMs = 500;             // at least, between two looks at a run that goes on
    static constexpr std::size_t kMostFarOut = 500; // listed

    // The workbench must outlive the panel.
    explicit StatisticsPanel(Workbench& workbench, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    [[nodiscard]] const StatisticsModel& model() const { return *model_; }
    void focusTable();
    [[nodiscard]] bool busy() const; // what is shown is not the newest

    QSize sizeHint() const override;

public slots:
    void refresh(); // other sources, or more in them

signals:
    void wanted(const stagecraft::ui::TimelineItem& item); // a block to go to
    void settled();                                        // what is shown is new
    void pressed();                                        // the histogram, by a mouse: it has no keys of its own

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    struct FarOut {
        traces::SliceRef slice{};
        std::size_t row = 0; // of the table
        QString text;
    };
    struct Told {
        std::weak_ptr<const traces::Trace> trace;
        bool growing = false;
        std::size_t steps = 0;
        traces::Durations durations;
        std::vector<FarOut> farOut; // the farthest first
        std::size_t farOutCount = 0;
        std::vector<traces::RankDeviceTime> deviceTimes; // none: no kernels are recorded
    };
    static Told tell(const traces::Trace& trace, const std::stop_token& stop);

    void listSources();
    [[nodiscard]] const TraceSource* source() const; // the chosen one; null where none is shown
    void refreshAtOnce();
    void start();
    void take(Told told);
    void showRow();
    void showFarOut();
    void showDevices();
    void goTo(int listed);
    [[nodiscard]] QString scopeText() const;

    Workbench& workbench_;
    Theme theme_;
    std::optional<SourceRole> role_; // that the user asked for
    Told told_;
    QStringList listed_; // texts of farOut_
    bool outdated_ = true;
    qint64 pauseMs_ = kLiveMs;
    QElapsedTimer sinceStart_; // of the last look at these sources
    QTimer later_;
    QComboBox* source_;
    QLabel* scope_;
    StatisticsModel* model_;
    QSortFilterProxyModel* ordered_;
    QTableView* table_;
    DurationHistogram* histogram_;
    QWidget* lower_; // of the parts below each other
    QLabel* farOutTitle_;
    QListWidget* farOut_;
    QWidget* devices_;
    TextTable* deviceTable_;
    BackgroundJob<Told> job_; // last: it ends before what it uses
};

} // namespace stagecraft::ui
