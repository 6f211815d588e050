// SPDX-License-Identifier: Apache-2.0
//
// The optimizer of one stage: fused kernels over all its parameters, state made at the start (so that the optimizer's
// memory is there from the first moment, as in a long run). Private to the runtime.
//
//   AdamW   Loshchilov and Hutter, arXiv 1711.05101; betas 0.9 and 0.999, eps 1e-8, weight decay 0.01 (PyTorch's defaults)
//   SGD     plain: w -= rate * gradient
#pragma once

#include "engine/plan/plan.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace stagecraft::runtime {

class StageOptimizer {
public:
    StageOptimizer(engine::OptimizerKind kind, double rate, std::vector<at::Tensor> parameters);

    // Goes on with other tensors of the same shapes: the state stays.
    void setParameters(std::vector<at::Tensor> parameters) { parameters_ = std::move(parameters); }
    // Every parameter must have its gradient. The gradients are left as they are.
    void step();

private:
    engine::OptimizerKind kind_;
    double rate_;
    std::vector<at::Tensor> parameters_;
    std::vector<at::Tensor> firstMoment_;  // AdamW
    std::vector<at::Tensor> secondMoment_; // AdamW
    std::vector<at::Tensor> steps_;        // AdamW: float32 scalars, as the kernel wants them
};

} // namespace stagecraft::runtime
