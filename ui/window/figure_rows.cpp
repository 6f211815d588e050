// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figure_rows.h"

#include "engine/explain/closed_forms.h"
#include "engine/plan/plan_json.h"
#include "traces/analysis/replicas.h"
#include "ui/bridge/text.h"
#include "ui/lab/quantities.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>

namespace stagecraft::ui {
namespace {

using traces::formatDuration;
using traces::formatPercent;
using traces::StepFigures;

QString tr(const char* text) { return QCoreApplication::translate("FigureRows", text); }

QString number(double value) { return QString::number(value, 'g', 4); }
QString percent(double value) { return toQt(formatPercent(value)); }

double peakActivations(const StepFigures& figures)
{
    double most = 0;
    for (const traces::RankFigures& rank : figures.ranks) most = std::max(most, rank.peakActivations);
    return most;
}

traces::Bytes peakMemory(const StepFigures& figures)
{
    traces::Bytes most = 0;
    for (const traces::RankFigures& rank : figures.ranks) most = std::max(most, rank.peakMemory);
    return most;
}

constexpr const char* kDash = "\u2013"; // nothing to tell: 0/0, or nothing recorded

QString perSecond(double count, traces::TimeNs makespan)
{
    if (makespan <= 0 || count <= 0) return QString::fromUtf8(kDash);
    return toQt(showRate(count * 1e9 / static_cast<double>(makespan)));
}

// A share of the step; none of a step in which nothing took any time.
QString share(const StepFigures& figures, double value)
{
    return figures.makespan > 0 && figures.work > 0 ? percent(value) : QString::fromUtf8(kDash);
}

// Tokens of a row where the model reads tokens, else 0.
int tokensPerRow(const engine::ModelSpec& model)
{
    const std::optional<engine::TokenInput> tokens = engine::tokenInput(model);
    return tokens ? tokens->sequence : 0;
}

using engine::ClosedForm;
using engine::ClosedForms;

// Theory's values for the shown schedule: beside a simulation those that it must agree with, else those of a plain step.
class Theory {
public:
    explicit Theory(const FigureInput& input)
    {
        const bool edited = input.simulated || !input.other;
        const std::optional<PlanFacts>& facts = edited ? input.simulatedFacts : input.otherFacts;
        if (!facts) return;
        forms_ = input.simulated && input.costs ? engine::formsBeside(facts->pipeline, *input.costs) : engine::closedForms(facts->pipeline);
    }
    [[nodiscard]] const std::optional<ClosedForm>& of(std::optional<ClosedForm> ClosedForms::*form) const { return forms_.*form; }

private:
    ClosedForms forms_;
};

class Rows {
public:
    explicit Rows(const FigureInput& input) : input_(input) {}

    template <class Value>
    FigureRow& add(const char* name, const char* formula, Value&& value, const char* tip)
    {
        FigureRow row;
        row.name = tr(name);
        row.formula = tr(formula);
        row.tip = tr(tip);
        if (input_.simulated) row.simulated = value(*input_.simulated);
        if (input_.other) row.other = value(*input_.other);
        rows.push_back(std::move(row));
        return rows.back();
    }
    static void addTheory(FigureRow& row, const std::optional<ClosedForm>& form, const std::function<QString(double)>& show)
    {
        if (!form) return;
        row.formula += QStringLiteral(" = ") + toQt(form->text);
        row.byFormula = show(form->value);
    }

    std::vector<FigureRow> rows;

private:
    const FigureInput& input_;
};

void addThroughput(Rows& rows, const FigureInput& input)
{
    const auto factsFor = [&](const StepFigures& f) -> const std::optional<PlanFacts>& {
        return &f == input.other ? input.otherFacts : input.simulatedFacts;
    };
    const auto microbatches = [&](const StepFigures& f) { // of all replicas
        return factsFor(f) ? static_cast<double>(factsFor(f)->pipeline.microbatches) * factsFor(f)->replicas : 0;
    };
    rows.add("Throughput", "micro-batches per second, m/makespan",
             [&](const StepFigures& f) { return perSecond(microbatches(f), f.makespan); },
             "Micro-batches that a step works through in a second, those of all replicas.");
    const auto modelOf = [](const std::optional<PlanFacts>& facts) { return facts && facts->model && !facts->model->empty() ? &*facts->model : nullptr; };
    const engine::ModelSpec* simulated = input.simulated ? modelOf(input.simulatedFacts) : nullptr;
    const engine::ModelSpec* other = input.other ? modelOf(input.otherFacts) : nullptr;
    for (const bool tokens : {true, false}) {
        const auto counts = [&](const engine::ModelSpec* model) { return model && (tokensPerRow(*model) > 0) == tokens; };
        if (!counts(simulated) && !counts(other)) continue;
        rows.add(tokens ? "Tokens" : "Rows", tokens ? "tokens per second, m·rows·sequence/makespan" : "rows per second, m·rows/makespan",
                 [&](const StepFigures& f) {
                     const engine::ModelSpec* model = &f == input.other ? other : simulated;
                     if (!counts(model)) return QString::fromUtf8(kDash);
                     const double perMicrobatch = static_cast<double>(model->microbatchRows) * std::max(tokensPerRow(*model), 1);
                     return perSecond(microbatches(f) * perMicrobatch, f.makespan);
                 },
                 tokens ? "Tokens that a step works through in a second." : "Rows that a step works through in a second.");
    }
}

void addSteadyState(Rows& rows, const FigureInput& input)
{
    const auto steadyOf = [&](const StepFigures& f) -> const traces::SteadyState* {
        const StepInsight* insight = &f == input.other ? input.otherInsight : input.simulatedInsight;
        return insight && insight->steady ? &*insight->steady : nullptr;
    };
    rows.add("Steady period", "per micro-batch, (t[n+p] − t[n])/p",
             [&](const StepFigures& f) {
                 const traces::SteadyState* steady = steadyOf(f);
                 return steady ? toQt(formatDuration(std::llround(steady->period))) : QString::fromUtf8(kDash);
             },
             "How much later the busiest rank begins the forward of one more micro-batch, once all ranks work; a schedule that "
             "does all forwards before the first backward has no such phase.");
    rows.add("Steady bubble", "idle/time over whole periods",
             [&](const StepFigures& f) {
                 const traces::SteadyState* steady = steadyOf(f);
                 return steady ? percent(steady->bubble) : QString::fromUtf8(kDash);
             },
             "Share of the time that ranks do not compute, on average over the whole periods of the steady phase: what is left of the bubble "
             "with ever more micro-batches.");
}

void addPath(Rows& rows, const FigureInput& input)
{
    rows.add("Critical path", "transfers + waits on it",
             [&](const StepFigures& f) {
                 const StepInsight* insight = &f == input.other ? input.otherInsight : input.simulatedInsight;
                 if (!insight || !insight->path) return QString::fromUtf8(kDash);
                 return toQt(formatDuration(insight->path->total.transfer + insight->path->total.wait));
             },
             "What of the chain of actions that ends last is no computing; P draws the chain.");
}

void addPrediction(Rows& rows, const FigureInput& input)
{
    if (input.simulated && input.other && input.other->makespan > 0) {
        FigureRow& row = rows.add("Prediction error", "simulated/measured − 1", [](const StepFigures&) { return QString(); },
                                  "How far the simulated makespan is from the shown step of the other trace; only where both have the same "
                                  "schedule, ranks, chunks, micro-batches and model.");
        const bool alike = input.simulatedFacts && input.otherFacts && comparable(*input.simulatedFacts, *input.otherFacts);
        row.other = alike ? percent(static_cast<double>(input.simulated->makespan) / static_cast<double>(input.other->makespan) - 1)
                          : tr("other plan");
    }
    if (!input.result || input.result->stepNs <= 0) return;
    const engine::RunResult& result = *input.result;
    FigureRow& own = rows.add("Own costs' prediction", "predicted step/median step − 1", [](const StepFigures&) { return QString(); },
                              "The step simulated from this run's own median times, against its median step.");
    own.simulated = toQt(formatDuration(result.predictedStepNs));
    own.other = percent(static_cast<double>(result.predictedStepNs) / static_cast<double>(result.stepNs) - 1);
    FigureRow& efficiency = rows.add("Efficiency", "ideal step/median step", [](const StepFigures&) { return QString(); },
                                     "The step of this run's own times without any cost of handing over, against its median step.");
    efficiency.other = percent(result.efficiency);
    FigureRow& check = rows.add("Gradient check", "largest difference", [](const StepFigures&) { return QString(); },
                                "The run's gradients against the plain sequential model.");
    check.simulated = result.gradientCheck == engine::GradientCheck::Off ? QString() : number(result.gradientMaxAbsDiff);
    check.other = toQt(engine::gradientCheckText(result.gradientCheck));
}

} // namespace

PlanFacts factsOf(const engine::Plan& plan) { return {plan.pipeline, plan.model, plan.machine.replicas}; }

std::optional<PlanFacts> factsOf(const traces::TraceInfo& info)
{
    if (!info.planJson.empty())
        if (const traces::Expected<engine::Plan> plan = engine::readPlan(info.planJson); plan.ok()) return factsOf(plan.value());
    if (info.schedule.empty()) return std::nullopt;
    PlanFacts facts;
    facts.pipeline.schedule = info.schedule;
    facts.replicas = traces::replicasOf(info);
    facts.pipeline.ranks = info.ranks / facts.replicas;
    facts.pipeline.chunks = info.chunks;
    facts.pipeline.microbatches = info.microbatches;
    return facts;
}

bool comparable(const PlanFacts& a, const PlanFacts& b)
{
    const bool sameModel = !a.model || !b.model || *a.model == *b.model;
    const bool custom = a.pipeline.schedule == "custom";
    return sameModel && a.pipeline.schedule == b.pipeline.schedule && a.pipeline.ranks == b.pipeline.ranks &&
           a.pipeline.chunks == b.pipeline.chunks && a.pipeline.microbatches == b.pipeline.microbatches &&
           (!custom || a.pipeline.customSchedule == b.pipeline.customSchedule);
}

std::vector<FigureRow> figureRows(const FigureInput& input)
{
    Rows rows(input);
    // Theory speaks of the simulated plan; of the other trace's where that stands alone.
    const Theory theory(input);

    FigureRow& makespan = rows.add("Makespan", "last end − first start",
                                   [](const StepFigures& f) { return toQt(formatDuration(f.makespan)); },
                                   "Time of the step over all ranks; paused time is left out.");
    Rows::addTheory(makespan, theory.of(&ClosedForms::makespan), [](double ns) { return toQt(formatDuration(std::llround(ns))); });
    Rows::addTheory(rows.add("Bubble of the makespan", "1 − work/makespan",
                             [](const StepFigures& f) { return share(f, f.bubbleMakespan); },
                             "Share of the step in which ranks do not compute, on average; the formula holds for equal stages and free transfers."),
                    theory.of(&ClosedForms::bubbleMakespan), percent);
    Rows::addTheory(rows.add("Bubble of the span", "1 − work/longest span", [](const StepFigures& f) { return share(f, f.bubbleSpan); },
                             "As above, against the longest time from a rank's first action to its last (the Zero-Bubble papers')."),
                    theory.of(&ClosedForms::bubbleSpan), percent);
    Rows::addTheory(rows.add("Bubble over ideal", "makespan/work − 1",
                             [](const StepFigures& f) { return share(f, f.bubbleOverIdeal); },
                             "How much longer the step takes than without any bubble (Megatron's)."),
                    theory.of(&ClosedForms::bubbleOverIdeal), percent);
    rows.add("Utilisation", "work/makespan", [](const StepFigures& f) { return share(f, 1 - f.bubbleMakespan); },
             "Share of the step in which ranks compute, on average.");
    Rows::addTheory(rows.add("Peak activations", "micro-batches in flight",
                             [](const StepFigures& f) { return number(peakActivations(f)); },
                             "Most micro-batches whose activations one rank holds at a time."),
                    theory.of(&ClosedForms::peakActivations), number);
    rows.add("Peak memory", "largest sum of a rank",
             [](const StepFigures& f) { return peakMemory(f) > 0 ? toQt(traces::formatSize(peakMemory(f))) : QString::fromUtf8(kDash); },
             "Most bytes that one rank holds within the step.");
    addThroughput(rows, input);
    addSteadyState(rows, input);
    addPath(rows, input);
    addPrediction(rows, input);
    return rows.rows;
}

} // namespace stagecraft::ui
