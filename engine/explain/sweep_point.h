// SPDX-License-Identifier: Apache-2.0
//
// What a sweep simulates at one value of its quantity: the plan with that value, and the costs. Internal to the sweep.
//
//   Expected<PointInput> input = pointInput(request, "1f1b", 8);
#pragma once

#include "engine/explain/family_shape.h"
#include "engine/explain/sweep.h"

namespace stagecraft::engine {

struct PointInput {
    Plan plan;
    CostTable costs;
    double samples = 1;    // of a micro-batch
    double serialTime = 0; // ns; the whole work on one rank, with scaling only
};

// An error is the reason why the point is left out.
Expected<PointInput> pointInput(const SweepRequest& request, const std::string& schedule, double value);

// Samples of the plan's own micro-batch.
double samplesOf(const Plan& plan);

} // namespace stagecraft::engine
