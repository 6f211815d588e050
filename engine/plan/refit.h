// SPDX-License-Identifier: Apache-2.0
//
// Costs of stages, fitted to other stages of the same model: what a trace or a run told of one partition becomes an estimate for another.
// Pure; any thread.
//
//   Refit fitted = refitCosts(observed.plan, withShape(observed.plan, 4, 2)).value();
//   fitted.stages[3].forward      ns
//   fitted.how                    "given out to the layers by their FLOPs ..."; empty where the stages are the same
//
// With a model each stage's times are given out to its layers by their FLOPs (forward; backward for B, I and W), its update and weights by
// their parameters, what it keeps by what they keep, and added up over the new stages. Without one a stage is cut into equal parts, or
// neighbours are joined.
#pragma once

#include "engine/plan/plan.h"

#include <string>
#include <vector>

namespace stagecraft::engine {

struct Refit {
    std::vector<StageCosts> stages; // one per stage of the plan that they are for
    std::string how;
};

// From from.costs.measured, one entry per stage of that plan. Errors: a partition that does not fit; without a model a number of stages
// that is neither a multiple nor a part of the other.
Expected<Refit> refitCosts(const Plan& from, const Plan& to);

} // namespace stagecraft::engine
