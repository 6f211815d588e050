// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/optimizer_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace stagecraft::runtime {

StageOptimizer::StageOptimizer(engine::OptimizerKind kind, double rate, std::vector<at::Tensor> parameters)
    : kind_(kind), rate_(rate), parameters_(std::move(parameters))
{
    if (kind_ != engine::OptimizerKind::AdamW) return;
    const at::NoGradGuard noGrad;
    for (const at::Tensor& parameter : parameters_) {
        firstMoment_.push_back(at::zeros_like(parameter));
        secondMoment_.push_back(at::zeros_like(parameter));
        steps_.push_back(at::zeros({}));
    }
}

void StageOptimizer::step()
{
    if (parameters_.empty()) return;
    const at::NoGradGuard noGrad;
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    switch (kind_) {
    case engine::OptimizerKind::AdamW:
        at::_foreach_add_(steps_, 1);
        at::_fused_adamw_(parameters_, gradients, firstMoment_, secondMoment_, {}, steps_, rate_, 0.9, 0.999, 0.01, 1e-8,
                          /*amsgrad=*/false, /*maximize=*/false);
        break;
    case engine::OptimizerKind::Sgd:
        at::_fused_sgd_(parameters_, gradients, {}, /*weight_decay=*/0, /*momentum=*/0, rate_, /*dampening=*/0,
                        /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
        break;
    }
}

} // namespace stagecraft::runtime
