// SPDX-License-Identifier: Apache-2.0
//
// The optimizer of one stage: fused kernels over all its parameters, state made at the start (so that the optimizer's
// memory is there from the first moment, as in a long run). What each kind does: engine/plan/run_spec.h. Of parameters in bfloat16 it
// keeps a main copy in float32, which is what it updates; they become the copy, rounded. Private to the runtime.
//
//   StageOptimizer optimizer(plan.run, parameters);
//   optimizer.step(plan.run.rateOf(3));
#pragma once

#include "engine/plan/plan.h"

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace stagecraft::runtime {

class StageOptimizer {
public:
    StageOptimizer(const engine::RunSpec& run, std::vector<at::Tensor> parameters);

    // Goes on with other tensors of the same shapes: the state stays.
    void setParameters(std::vector<at::Tensor> parameters) { parameters_ = std::move(parameters); }
    // Every parameter must have its gradient, in float32. The gradients are left as they are.
    void step(double rate);

    // What it keeps of each parameter, by PyTorch's names: "exp_avg", "exp_avg_sq" and "step", or "momentum_buffer", or nothing; and the
    // main copy by that of Megatron-LM: "fp32_param".
    struct State {
        std::string_view name;
        const std::vector<at::Tensor>& ofParameters;
    };
    [[nodiscard]] std::vector<State> state() const;
    // The state is one that steps have gone before.
    void goOn() { first_ = false; }

private:
    engine::OptimizerKind kind_;
    double momentum_;
    double weightDecay_;
    bool first_ = true;
    std::vector<at::Tensor> parameters_;
    std::vector<at::Tensor> main_;         // of parameters in bfloat16
    std::vector<at::Tensor> firstMoment_;  // Adam, AdamW; of Momentum the velocity
    std::vector<at::Tensor> secondMoment_; // Adam, AdamW
    std::vector<at::Tensor> steps_;        // Adam, AdamW: float32 scalars, as the kernel wants them
};

} // namespace stagecraft::runtime
