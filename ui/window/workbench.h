// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything behind the window, without the window: the plan, its simulation, the run, an opened trace, and which of them
// the timeline shows how. The window's panels look at it; tests drive it without any.
//
//        PlanDocument --changed--> SimulationController --changed--+
//                                                                   +--> TimelineScene
//        RunController --started, grew-----------------------------+
#pragma once

#include "ui/lab/plan_document.h"
#include "ui/timeline/timeline_scene.h"
#include "ui/window/run_controller.h"
#include "ui/window/simulation_controller.h"

#include <QObject>

#include <memory>
#include <optional>

namespace stagecraft::ui {

enum class ViewKind : std::uint8_t { Stacked, Overlaid, SimulatedOnly, OtherOnly };

class Workbench : public QObject {
    Q_OBJECT
public:
    explicit Workbench(QObject* parent = nullptr);

    [[nodiscard]] PlanDocument& document() { return document_; }
    [[nodiscard]] const PlanDocument& document() const { return document_; }
    [[nodiscard]] SimulationController& simulation() { return simulation_; }
    [[nodiscard]] const SimulationController& simulation() const { return simulation_; }
    [[nodiscard]] RunController& run() { return run_; }
    [[nodiscard]] const RunController& run() const { return run_; }
    [[nodiscard]] TimelineScene& scene() { return scene_; }
    [[nodiscard]] const TimelineScene& scene() const { return scene_; }

    // The trace beside the simulated one: of the last run, or opened from a file. Null when there is none.
    [[nodiscard]] const std::shared_ptr<const traces::Trace>& other() const { return other_; }
    [[nodiscard]] bool otherIsRun() const { return other_ && otherFile_.isEmpty(); }
    [[nodiscard]] const QString& otherFile() const { return otherFile_; }

    [[nodiscard]] ViewKind view() const { return view_; }
    void setView(ViewKind view);

    // Index into scene().sources(), nullopt where it is not shown.
    [[nodiscard]] std::optional<int> simulatedSource() const { return simulatedSource_; }
    [[nodiscard]] std::optional<int> otherSource() const { return otherSource_; }

    traces::Expected<void> startRun();
    // Loads a trace to look at; it takes the place of the last run's.
    traces::Expected<void> openTrace(const QString& file);
    void closeOther();

    // Why the last run's times cannot be taken over as costs; empty: they can.
    [[nodiscard]] QString whyNoMeasuredCosts() const;
    traces::Expected<void> useMeasuredCosts(); // and lays the new simulation over the run

signals:
    void viewChanged();
    void otherChanged(); // another trace beside the simulated one, or none

private:
    void updateSources();
    void setOther(std::shared_ptr<const traces::Trace> trace, const QString& file);

    PlanDocument document_;
    SimulationController simulation_;
    RunController run_;
    TimelineScene scene_;
    std::shared_ptr<const traces::Trace> other_;
    QString otherFile_;
    ViewKind view_ = ViewKind::Stacked;
    std::optional<int> simulatedSource_;
    std::optional<int> otherSource_;
};

} // namespace stagecraft::ui
