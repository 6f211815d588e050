// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes of a plan's model with what they bring along, and what the lab says about a model.
#pragma once

#include "engine/plan/plan.h"

#include <string>
#include <vector>

namespace stagecraft::ui {

// Another model, its layers balanced anew. Measured costs belong to the old model and are dropped; costs follow the new
// model where they followed the old one.
engine::Plan withModel(engine::Plan plan, const engine::ModelSpec& model);

struct ModelChoice {
    std::string name; // of the preset plan that has it
    engine::ModelSpec model;
};
// The models of the preset plans.
const std::vector<ModelChoice>& modelChoices();

// "10 layers, 7.2 M parameters, 4.6 GFLOP forward per micro-batch. Batch 16 rows, output 16×128×1000."
std::string modelSummary(const engine::Plan& plan);

} // namespace stagecraft::ui
