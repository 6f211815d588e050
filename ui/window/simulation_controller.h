// SPDX-License-Identifier: GPL-3.0-or-later
//
// Keeps a simulated trace that belongs to the plan. Small plans are simulated at once, so that a changed control is drawn
// in the same frame; larger ones by a background job whose result is dropped when the plan has changed meanwhile.
//
//   controller.setPlan(document.plan());
//   connect(&controller, &SimulationController::changed, ...);
#pragma once

#include "engine/plan/plan.h"
#include "engine/schedule/validate.h"
#include "traces/analysis/figures.h"
#include "traces/base/expected.h"
#include "traces/store/trace.h"
#include "ui/bridge/background_job.h"

#include <QObject>
#include <QString>

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::ui {

struct Simulation {
    std::shared_ptr<const traces::Trace> trace;
    traces::StepFigures figures;
    engine::CostTable costs;
    std::shared_ptr<const engine::Schedule> schedule; // the plan's order
    // Where ranks wait for each other for ever: the circle. The trace then goes as far as they came.
    std::vector<engine::WaitingRank> deadlock = {};
};

// Schedule, costs, simulation and figures of a plan; any thread. An error when another thread asked for a stop. A deadlock is no
// error as long as anything runs before it.
traces::Expected<Simulation> simulatePlan(const engine::Plan& plan, const std::stop_token& stop = {});

// "Deadlock: rank 0 cannot start 0B0 before 1B0 of rank 1, ..."
QString deadlockText(const std::vector<engine::WaitingRank>& circle);

class SimulationController : public QObject {
    Q_OBJECT
public:
    // Up to so many actions a simulation fits into a frame; see bench/window_bench.
    static constexpr long long kDirectActions = 20'000;

    explicit SimulationController(QObject* parent = nullptr);

    void setPlan(const engine::Plan& plan);
    void cancel(); // the job at work; the last result stays

    // The newest result; its trace is null before the first. It is of an earlier plan while `problem` or `busy` says so.
    [[nodiscard]] const Simulation& simulation() const { return simulation_; }
    [[nodiscard]] const QString& problem() const { return problem_; } // why the plan cannot be simulated; empty: it can
    [[nodiscard]] bool busy() const { return job_.busy(); }

signals:
    void changed();
    void problemChanged();
    void busyChanged(bool busy);

private:
    void take(traces::Expected<Simulation> result);
    void setProblem(const QString& problem);

    Simulation simulation_;
    QString problem_;
    std::optional<engine::Plan> plan_;
    BackgroundJob<traces::Expected<Simulation>> job_;
};

} // namespace stagecraft::ui
