// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figure_rows.h"

#include "ui/bridge/text.h"
#include "ui/window/closed_forms.h"

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

QString perSecond(double count, traces::TimeNs makespan)
{
    return makespan > 0 ? tr("%1/s").arg(number(count * 1e9 / static_cast<double>(makespan))) : QString();
}

// Tokens of a row where the model reads tokens, else 0.
int tokensPerRow(const engine::ModelSpec& model)
{
    if (model.empty()) return 0;
    const auto* embedding = std::get_if<engine::Embedding>(&model.layers.front());
    return embedding ? embedding->sequence : 0;
}

// Time of one rank's forward and backward where all stages cost the same and transfers are free: when theory's makespan holds.
std::optional<std::pair<double, double>> equalStages(const FigureInput& input)
{
    if (!input.costs || !input.plan || input.costs->transfer != 0 || input.costs->stages.empty() || input.costs->jitter != 0)
        return std::nullopt;
    const engine::StageCosts& first = input.costs->stages.front();
    for (const engine::StageCosts& stage : input.costs->stages)
        if (stage.forward != first.forward || stage.backward != first.backward || stage.optimizer != 0) return std::nullopt;
    const double chunks = input.plan->pipeline.chunks;
    return std::pair{chunks * static_cast<double>(first.forward), chunks * static_cast<double>(first.backward)};
}

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
    const auto countOf = [&](const StepFigures& figures) {
        if (&figures == input.other && input.otherMicrobatches > 0) return input.otherMicrobatches;
        return input.plan ? input.plan->pipeline.microbatches : 0;
    };
    rows.add("Throughput", "m/makespan", [&](const StepFigures& f) { return perSecond(countOf(f), f.makespan); },
             "Micro-batches that a step works through in a second.");
    if (!input.plan || input.plan->model.empty()) return;
    const int tokens = tokensPerRow(input.plan->model);
    const double perMicrobatch = static_cast<double>(input.plan->model.microbatchRows) * std::max(tokens, 1);
    rows.add(tokens > 0 ? "Tokens" : "Rows", tokens > 0 ? "m·rows·sequence/makespan" : "m·rows/makespan",
             [&](const StepFigures& f) { return perSecond(countOf(f) * perMicrobatch, f.makespan); },
             tokens > 0 ? "Tokens that a step works through in a second." : "Rows that a step works through in a second.");
}

void addPrediction(Rows& rows, const FigureInput& input)
{
    if (input.simulated && input.other && input.other->makespan > 0) {
        FigureRow& row = rows.add("Prediction error", "simulated/measured − 1", [](const StepFigures&) { return QString(); },
                                  "How far the simulated makespan is from the shown step of the other trace.");
        row.other = percent(static_cast<double>(input.simulated->makespan) / static_cast<double>(input.other->makespan) - 1);
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

std::vector<FigureRow> figureRows(const FigureInput& input)
{
    Rows rows(input);
    const engine::PipelineSpec* pipeline = input.plan ? &input.plan->pipeline : nullptr;
    const auto theory = [&](auto form) { return pipeline ? form(*pipeline) : std::optional<ClosedForm>(); };

    FigureRow& makespan = rows.add("Makespan", "last end − first start",
                                   [](const StepFigures& f) { return toQt(formatDuration(f.makespan)); },
                                   "Time of the step over all ranks; paused time is left out.");
    if (const auto times = equalStages(input); times && pipeline)
        Rows::addTheory(makespan, makespanForm(*pipeline, times->first, times->second),
                        [](double ns) { return toQt(formatDuration(std::llround(ns))); });
    Rows::addTheory(rows.add("Bubble of the makespan", "1 − work/makespan",
                             [](const StepFigures& f) { return percent(f.bubbleMakespan); },
                             "Share of the step in which ranks do not compute, on average; the formula holds for equal stages and free transfers."),
                    theory(bubbleMakespanForm), percent);
    rows.add("Bubble of the span", "1 − work/longest span", [](const StepFigures& f) { return percent(f.bubbleSpan); },
             "As above, against the longest time from a rank's first action to its last (the Zero-Bubble papers').");
    Rows::addTheory(rows.add("Bubble over ideal", "makespan/work − 1",
                             [](const StepFigures& f) { return percent(f.bubbleOverIdeal); },
                             "How much longer the step takes than without any bubble (Megatron's)."),
                    theory(bubbleOverIdealForm), percent);
    rows.add("Utilisation", "work/makespan", [](const StepFigures& f) { return percent(1 - f.bubbleMakespan); },
             "Share of the step in which ranks compute, on average.");
    Rows::addTheory(rows.add("Peak activations", "micro-batches in flight",
                             [](const StepFigures& f) { return number(peakActivations(f)); },
                             "Most micro-batches whose activations one rank holds at a time."),
                    theory(peakActivationsForm), number);
    rows.add("Peak memory", "largest sum of a rank",
             [](const StepFigures& f) { return peakMemory(f) > 0 ? toQt(traces::formatSize(peakMemory(f))) : QString(); },
             "Most bytes that one rank holds within the step.");
    addThroughput(rows, input);
    addPrediction(rows, input);
    return rows.rows;
}

} // namespace stagecraft::ui
