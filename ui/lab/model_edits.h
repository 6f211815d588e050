// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes of a plan's model with what they bring along, and what the lab says about a model.
#pragma once

#include "engine/plan/plan.h"
#include "traces/base/expected.h"

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::ui {

// Another model, its layers given out anew by the plan's rule. Measured costs belong to the old model and are dropped; costs follow the new
// model where they followed the old one.
engine::Plan withModel(engine::Plan plan, const engine::ModelSpec& model);

// Whether a run of the plan changes weights: inference does not.
bool trainsWeights(const engine::Plan& plan);

// A partition by hand: "3, 3, 4", or a layout as Megatron-LM has it, "Et*2|tt|L" (engine/model/layout.h).
traces::Expected<engine::Partition> parseLayers(const engine::ModelSpec& model, std::string_view text);
// The plan with it; empty: with the one by FLOPs. Costs that were measured with another one are dropped, but not while a list that is
// being typed does not fit yet.
engine::Plan withTypedLayers(engine::Plan plan, const engine::Partition& partition);
// The partition in use as a layout; empty where there is none.
std::string layoutInUse(const engine::Plan& plan);

struct ModelChoice {
    std::string name; // of the preset plan that has it
    engine::ModelSpec model;
};
// The models of the preset plans.
const std::vector<ModelChoice>& modelChoices();

// "10 layers, 7.2 M parameters, 4.6 GFLOP forward per micro-batch. Batch 16 rows, output 16×128×1000."
std::string modelSummary(const engine::Plan& plan);

} // namespace stagecraft::ui
