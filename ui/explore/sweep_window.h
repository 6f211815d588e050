// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window of curves: one quantity of the plan varies, the figures of one or several schedules are plotted against it, simulated
// solid and by formula dashed. The sweep runs beside the window, with progress, and can be cancelled; a new one takes the place of the
// last. Curves are exported as a picture, their points as CSV.
//
//   +-----------------+----------------------------------+
//   | vary, values    | figure                           |
//   | schedules       | curves                           |
//   | more            |                                  |
//   | Sweep  Cancel   | the point that is looked at      |
//   +-----------------+----------------------------------+
#pragma once

#include "engine/explain/sweep.h"
#include "ui/bridge/background_job.h"
#include "ui/lab/form.h"
#include "ui/theme/theme.h"
#include "ui/window/file_dialogs.h"

#include <QDialog>

#include <map>
#include <optional>

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;

namespace stagecraft::ui {

class PlanDocument;
class ScheduleList;
class SweepPlot;

class SweepWindow : public QDialog {
    Q_OBJECT
public:
    // The document must outlive the window.
    SweepWindow(const PlanDocument& document, FileDialogs dialogs, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    [[nodiscard]] SweepPlot& plot() { return *plot_; }
    [[nodiscard]] bool busy() const { return job_.busy(); }

public slots:
    void sweep(); // what the controls say
    void cancel();

signals:
    void swept();

private:
    QWidget* buildControls();
    QWidget* buildCurves();
    void showQuantity();
    void showFigures();
    void showPlan();
    void showResult(engine::Expected<engine::Sweep> result);
    void refreshButtons();
    void exportPicture();
    void exportTable();
    [[nodiscard]] engine::SweepQuantity quantity() const;
    [[nodiscard]] engine::Expected<engine::SweepRequest> request() const;

    const PlanDocument& document_;
    FileDialogs dialogs_;
    Theme theme_;
    std::map<engine::SweepQuantity, QString> typed_; // values of each quantity, as they were left
    std::optional<engine::Plan> sweptPlan_;          // that the curves are of

    QComboBox* quantity_;
    QLineEdit* values_;
    ScheduleList* schedules_;
    QFormLayout* more_ = nullptr;
    QLineEdit* batch_;
    QLineEdit* fixed_;
    QComboBox* scaling_;
    QPushButton* start_;
    QPushButton* cancel_;
    QProgressBar* progress_;
    InlineNote* problem_;
    QComboBox* figure_;
    SweepPlot* plot_;
    QLabel* told_;
    QLabel* notes_;
    QPushButton* picture_;
    QPushButton* table_;
    BackgroundJob<engine::Expected<engine::Sweep>> job_; // last: it ends before what it uses
};

} // namespace stagecraft::ui
