// SPDX-License-Identifier: GPL-3.0-or-later
//
// The figures of a step as lines to read: the formula with its value by theory, what was simulated, what was measured.
// Pure; the panel shows it.
#pragma once

#include "engine/plan/plan.h"
#include "engine/session/session_message.h"
#include "traces/analysis/figures.h"
#include "ui/timeline/step_analyses.h"

#include <QString>

#include <optional>
#include <vector>

namespace stagecraft::ui {

// What is known of the plan that a trace came from.
struct PlanFacts {
    engine::PipelineSpec pipeline;
    std::optional<engine::ModelSpec> model; // nullopt: not known; empty: the plan has none
    int replicas = 1;                       // of the pipeline, each on micro-batches of its own

    bool operator==(const PlanFacts&) const = default;
};

PlanFacts factsOf(const engine::Plan& plan);
// From the plan that the trace carries, or what its header says; nullopt where that names no schedule.
std::optional<PlanFacts> factsOf(const traces::TraceInfo& info);

// Whether figures of the two may be set against each other: the same schedule, ranks, chunks, micro-batches and model. A
// model that one of them does not tell is taken for the same.
bool comparable(const PlanFacts& a, const PlanFacts& b);

struct FigureInput {
    std::optional<PlanFacts> simulatedFacts{};    // of the edited plan; for the formulas too
    const engine::CostTable* costs = nullptr;     // of the simulation
    const traces::StepFigures* simulated = nullptr;
    const StepInsight* simulatedInsight = nullptr; // of the same step; null where it is not worked out
    std::optional<PlanFacts> otherFacts{};        // nullopt: unknown
    const traces::StepFigures* other = nullptr;   // measured, emulated or imported; of a finished step
    const StepInsight* otherInsight = nullptr;
    const engine::RunResult* result = nullptr;    // of the run that made `other`
};

struct FigureRow {
    QString name;
    QString formula;
    QString byFormula; // empty: theory has no value for it
    QString simulated;
    QString other;
    QString tip;

    bool operator==(const FigureRow&) const = default;
};

std::vector<FigureRow> figureRows(const FigureInput& input);

} // namespace stagecraft::ui
