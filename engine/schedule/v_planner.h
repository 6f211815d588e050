// SPDX-License-Identifier: Apache-2.0
//
// Plans one ZB-V schedule by times and memory; zb_v_auto.cpp tells the rule and tries the planner's options.
//
//   const VPlan plan = planV(request, {.weightGradBeforeForward = true, .weightGradBeforeInputGrad1 = false}, nullptr);
#pragma once

#include "engine/schedule/schedule.h"

#include <vector>

namespace stagecraft::engine {

// What a micro-batch goes through on every rank, in this order; a weight gradient is that of the rank's oldest input
// gradient.
enum class VPass : std::uint8_t { Forward0, Forward1, InputGrad1, InputGrad0, WeightGrad };

struct VPlan {
    std::vector<std::vector<VPass>> order; // [rank][position]
    std::vector<double> bubble;            // of each rank, ns: what it waits after its first action
    double largestBubble = 0;
};

// Where a weight gradient goes before an action, though it makes the action late.
struct VPlanOptions {
    bool weightGradBeforeForward = true;
    bool weightGradBeforeInputGrad1 = true;
};

// `known` is an earlier plan for the same request, or none. The plan is not whole where the request's stop was asked for.
VPlan planV(const ScheduleRequest& request, const VPlanOptions& options, const VPlan* known);

} // namespace stagecraft::engine
