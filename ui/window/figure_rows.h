// SPDX-License-Identifier: GPL-3.0-or-later
//
// The figures of a step as lines to read: the formula with its value by theory, what was simulated, what was measured.
// Pure; the panel shows it.
#pragma once

#include "engine/plan/plan.h"
#include "engine/session/session_message.h"
#include "traces/analysis/figures.h"

#include <QString>

#include <optional>
#include <vector>

namespace stagecraft::ui {

struct FigureInput {
    const engine::Plan* plan = nullptr;           // for the formulas; null: unknown
    const engine::CostTable* costs = nullptr;     // of the simulation
    const traces::StepFigures* simulated = nullptr;
    const traces::StepFigures* other = nullptr;   // measured, emulated or imported
    int otherMicrobatches = 0;                    // per step of that trace; 0: unknown
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
