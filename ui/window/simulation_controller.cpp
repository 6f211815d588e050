// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/simulation_controller.h"

#include "engine/plan/plan_json.h"
#include "engine/simulate/simulate.h"
#include "ui/bridge/text.h"

namespace stagecraft::ui {
namespace {

using traces::Expected;

// Without what no simulation goes by: of a run, only precision and optimizer say how much is held and sent, and data has no part in it.
// What a plan comes to have counts until it is left out here.
engine::Plan simulatedPart(engine::Plan plan)
{
    plan.description.clear();
    plan.data = {};
    plan.run = {.precision = plan.run.precision, .optimizer = plan.run.optimizer};
    return plan;
}

bool simulateAlike(const engine::Plan& a, const engine::Plan& b) { return simulatedPart(a) == simulatedPart(b); }

} // namespace

Expected<Simulation> simulatePlan(const engine::Plan& plan, const std::stop_token& stop)
{
    // a run's own settings that contradict each other, or a file that is still to be named, are no obstacle
    if (Expected<void> sound = checkPlan(simulatedPart(plan)); !sound.ok()) return sound.error();
    Expected<engine::Schedule> schedule = scheduleOf(plan, stop);
    if (!schedule.ok()) return schedule.error();
    Expected<engine::CostTable> costs = costsOf(plan);
    if (!costs.ok()) return costs.error();
    Expected<traces::Trace> trace = engine::simulate(schedule.value(), costs.value(), stop);
    std::vector<engine::WaitingRank> deadlock;
    if (!trace.ok()) {
        Expected<engine::PartialSimulation> partial = engine::simulateUntilStuck(schedule.value(), costs.value(), stop);
        if (!partial.ok() || partial.value().deadlock.empty() || partial.value().trace.sliceCount() == 0) return trace.error();
        deadlock = std::move(partial.value().deadlock);
        trace = std::move(partial.value().trace);
    }
    if (stop.stop_requested()) return traces::Error{"the simulation was stopped"};
    Expected<traces::StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) return figures.error();
    traces::Trace& made = trace.value();
    made.info.planJson = engine::writePlan(plan);
    const engine::ScheduleFamily* family = engine::findFamily(plan.pipeline.schedule);
    const std::string title = family ? family->title : plan.pipeline.schedule;
    made.info.title = plan.name.empty() ? title : plan.name + ", " + title;
    return Simulation{std::make_shared<const traces::Trace>(std::move(made)), std::move(figures).value(), std::move(costs).value(),
                      std::make_shared<const engine::Schedule>(std::move(schedule).value()), std::move(deadlock)};
}

QString deadlockText(const std::vector<engine::WaitingRank>& circle)
{
    QStringList parts;
    for (const engine::WaitingRank& rank : circle)
        parts << SimulationController::tr("rank %1 cannot start %2 before %3 of rank %4")
                     .arg(rank.rank.value)
                     .arg(toQt(rank.action), toQt(rank.waitsFor))
                     .arg(rank.waitsForRank.value);
    return SimulationController::tr("Deadlock: %1.").arg(parts.join(QStringLiteral(", ")));
}

SimulationController::SimulationController(QObject* parent) : QObject(parent)
{
    connect(&job_, &JobLane::busyChanged, this, &SimulationController::busyChanged);
}

void SimulationController::setPlan(const engine::Plan& plan)
{
    if (plan_ && simulateAlike(*plan_, plan)) return;
    plan_ = plan;
    const long long actions = 2LL * plan.stages() * plan.pipeline.microbatches;
    if (actions <= kDirectActions) {
        job_.cancel();
        take(simulatePlan(plan));
        return;
    }
    job_.start([plan](const JobControl& control) { return simulatePlan(plan, control.stopToken()); },
               [this](Expected<Simulation> result) { take(std::move(result)); });
}

void SimulationController::cancel()
{
    if (!job_.busy()) return;
    job_.cancel();
    plan_.reset(); // the same plan may be asked for again
    setProblem(tr("The simulation was cancelled; change a control to start it again."));
}

void SimulationController::take(Expected<Simulation> result)
{
    if (!result.ok()) {
        setProblem(toQt(result.error().message));
        return;
    }
    simulation_ = std::move(result).value();
    setProblem({});
    emit changed();
}

void SimulationController::setProblem(const QString& problem)
{
    if (problem == problem_) return;
    problem_ = problem;
    emit problemChanged();
}

} // namespace stagecraft::ui
