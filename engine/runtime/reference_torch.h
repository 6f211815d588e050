// SPDX-License-Identifier: Apache-2.0
//
// The run's check of itself: the gradients of a step against those of the plain sequential model. The reference knows no
// stages, boundaries, schedules or hand-offs: it builds the whole model anew from the seed, runs the micro-batches one
// after another on one thread, and lets autograd accumulate. It works between steps, outside of every span that is
// timed, and its memory is booked on no rank. Private to the runtime.
//
//   GradientChecker checker(plan, schedule);
//   if (checker.due(step)) checker.prepare(step, pipeline, preparation); // before the step
//   if (checker.due(step)) checker.compare(step, pipeline);              // after it
//
// Equal weights, equal data, equal order of accumulation (the schedule's order of backwards) and the same kernels give the
// same bits. Where a schedule accumulates in an order of its own per stage, sums round differently: then a gradient may be
// off by kTolerance of the parameter's largest one. Where the reference itself is no longer finite the run has diverged, as
// the sequential model would have: that is no fault of the pipeline, and is told apart.
#pragma once

#include "engine/runtime/pipeline_torch.h"

#include <string>

namespace stagecraft::runtime {

struct CheckOutcome {
    engine::GradientCheck result = engine::GradientCheck::Off;
    double maxAbsDiff = 0;
    bool diverged = false;          // the reference has a gradient that is not finite
    engine::FailureMessage failure; // where result is Failed
};

class GradientChecker {
public:
    static constexpr double kTolerance = 1e-4;

    GradientChecker(const engine::Plan& plan, const engine::Schedule& schedule);

    [[nodiscard]] bool due(traces::Step step) const;
    void prepare(traces::Step step, Pipeline& pipeline, const Preparation& preparation);
    void compare(traces::Step step, Pipeline& pipeline);
    [[nodiscard]] const CheckOutcome& outcome() const { return outcome_; }

private:
    void build(const Preparation& preparation);

    const engine::Plan& plan_;
    std::vector<int> order_; // of the backwards over micro-batches
    std::vector<LayerModule> layers_;
    std::vector<at::Tensor> parameters_;
    std::vector<at::Tensor> inputs_;
    std::vector<at::Tensor> targets_;
    CheckOutcome outcome_;
};

} // namespace stagecraft::runtime
