// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything behind the window, without the window: the plan, its simulation, the run, an opened trace, and which of them
// the timeline shows how. The window's panels look at it; tests drive it without any.
//
//        PlanDocument --changed--> SimulationController --changed--+
//                                                                   +--> TimelineScene
//        RunController --started, grew-----------------------------+
#pragma once

#include "ui/bridge/engine_machine.h"
#include "ui/lab/plan_document.h"
#include "ui/timeline/timeline_scene.h"
#include "ui/window/run_controller.h"
#include "ui/window/simulation_controller.h"

#include <QObject>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::ui {

enum class ViewKind : std::uint8_t { Stacked, Overlaid, SimulatedOnly, OtherOnly };

struct KeptRun {
    std::shared_ptr<const traces::Trace> trace;
    QString label; // RunController::label()
    bool saved = false;
};

// Whether the plan in an opened trace takes the place of the lab's, where that has nothing to lose.
enum class TracePlan : std::uint8_t { Take, Offer };

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

    // The trace beside the simulated one: of a run, or opened from a file. Null when there is none.
    [[nodiscard]] const std::shared_ptr<const traces::Trace>& other() const { return other_; }
    [[nodiscard]] bool otherIsRun() const { return other_ && other_ == run_.trace(); } // the newest run's
    [[nodiscard]] const QString& otherFile() const { return otherFile_; }
    // In a word what it is: "measured", "emulated", "imported"; "opened" where a file holds a simulation, as the plan's own
    // trace is a simulated one too. "measured" while there is none.
    [[nodiscard]] QString otherWord() const;

    // The last runs, newest first: what another run or an opened trace takes the place of can be shown again.
    static constexpr std::size_t kMostRuns = 5;
    [[nodiscard]] const std::vector<KeptRun>& runs() const { return runs_; }
    void showRun(std::size_t index); // into runs(); nothing while a run goes on
    // Those of the last runs that have anything which no file has, newest first.
    [[nodiscard]] std::vector<KeptRun> unsavedRuns() const;
    [[nodiscard]] bool goesOn(const KeptRun& run) const { return run_.active() && run.trace == run_.trace(); }
    void markSaved(const std::shared_ptr<const traces::Trace>& trace);

    [[nodiscard]] ViewKind view() const { return view_; }
    void setView(ViewKind view);

    // Index into scene().sources(), nullopt where it is not shown.
    [[nodiscard]] std::optional<int> simulatedSource() const { return simulatedSource_; }
    [[nodiscard]] std::optional<int> otherSource() const { return otherSource_; }

    // What the engine has told of where it runs; a plan that this has not what it takes for cannot be run.
    void setEngineMachine(const EngineMachine& machine);
    // Why the plan cannot be run, or empty. Found out once for each plan.
    [[nodiscard]] const QString& whyNotRunnable() const { return obstacle_; }
    [[nodiscard]] QString whyNotRunnable(const engine::Plan& plan) const; // another than the lab's
    traces::Expected<void> startRun();
    // Shows a trace alone that was read from a file. An error during a run.
    traces::Expected<void> showTrace(traces::Trace trace, const QString& file);
    traces::Expected<void> openTrace(const QString& file); // reads it here and now, which may take long
    [[nodiscard]] traces::Expected<void> whyNoOtherTrace() const;
    void closeOther();
    // What whoever uses the opened trace must know of it, each with the file's name; none where no trace is opened.
    [[nodiscard]] QStringList openedCaveats() const;
    [[nodiscard]] QStringList openedInformation() const; // the same of what is good to know: nothing is amiss

    // The plan that the trace beside the simulated one carries, where it is another than the lab's; else an error that says why
    // there is none to take over.
    [[nodiscard]] traces::Expected<engine::Plan> tracePlan() const;
    traces::Expected<void> useTracePlan(); // an edit that can be undone
    // After a trace was opened; says for the log what became of its plan.
    QString meetTracePlan(TracePlan itsPlan);

    // Why the last run's times cannot be taken over as costs; empty: they can.
    [[nodiscard]] QString whyNoMeasuredCosts() const;
    traces::Expected<void> useMeasuredCosts(); // and lays the new simulation over the run

signals:
    void runnableChanged(); // by what the engine told
    void viewChanged();
    void otherChanged(); // another trace beside the simulated one, or none
    void runsChanged();
    void runDropped(const QString& label); // it was the oldest of too many

private:
    void updateSources();
    void setOther(std::shared_ptr<const traces::Trace> trace, const QString& file);
    void keepRun();
    [[nodiscard]] QString otherLabel() const;

    PlanDocument document_;
    SimulationController simulation_;
    RunController run_;
    TimelineScene scene_;
    std::shared_ptr<const traces::Trace> other_;
    QString otherFile_; // empty: of a run
    std::vector<KeptRun> runs_;
    EngineMachine machine_;
    QString obstacle_;
    // What was read of other_'s plan, and from which text: it is asked for at every change of the lab.
    mutable std::string readJson_;
    mutable std::optional<traces::Expected<engine::Plan>> readPlan_;
    ViewKind view_ = ViewKind::Stacked;
    std::optional<int> simulatedSource_;
    std::optional<int> otherSource_;
};

} // namespace stagecraft::ui
