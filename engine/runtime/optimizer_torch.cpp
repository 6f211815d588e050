// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/optimizer_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace stagecraft::runtime {

namespace {

constexpr double kAdamWDecay = 0.01;
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

} // namespace

StageOptimizer::StageOptimizer(const engine::RunSpec& run, std::vector<at::Tensor> parameters)
    : kind_(run.optimizer), momentum_(run.momentum),
      weightDecay_(run.weightDecay.value_or(kind_ == engine::OptimizerKind::AdamW ? kAdamWDecay : 0)), parameters_(std::move(parameters))
{
    const at::NoGradGuard noGrad;
    for (const at::Tensor& parameter : parameters_) {
        if (run.optimizerValues() >= 1) firstMoment_.push_back(at::zeros_like(parameter));
        if (run.optimizerValues() < 2) continue;
        secondMoment_.push_back(at::zeros_like(parameter));
        steps_.push_back(at::zeros({}, parameter.options()));
    }
}

void StageOptimizer::step(double rate)
{
    if (parameters_.empty()) return;
    const at::NoGradGuard noGrad;
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    switch (kind_) {
    case engine::OptimizerKind::AdamW:
        at::_foreach_add_(steps_, 1);
        at::_fused_adamw_(parameters_, gradients, firstMoment_, secondMoment_, {}, steps_, rate, kBeta1, kBeta2, weightDecay_, kEpsilon,
                          /*amsgrad=*/false, /*maximize=*/false);
        break;
    case engine::OptimizerKind::Adam:
        at::_foreach_add_(steps_, 1);
        at::_fused_adam_(parameters_, gradients, firstMoment_, secondMoment_, {}, steps_, rate, kBeta1, kBeta2, weightDecay_, kEpsilon,
                         /*amsgrad=*/false, /*maximize=*/false);
        break;
    case engine::OptimizerKind::Momentum:
    case engine::OptimizerKind::Sgd: // without velocities
        at::_fused_sgd_(parameters_, gradients, firstMoment_, weightDecay_, firstMoment_.empty() ? 0 : momentum_, rate, /*dampening=*/0,
                        /*nesterov=*/false, /*maximize=*/false, first_);
        break;
    }
    first_ = false;
}

std::vector<StageOptimizer::State> StageOptimizer::state() const
{
    switch (kind_) {
    case engine::OptimizerKind::Sgd: return {};
    case engine::OptimizerKind::Momentum: return {{"momentum_buffer", firstMoment_}};
    case engine::OptimizerKind::Adam:
    case engine::OptimizerKind::AdamW: return {{"exp_avg", firstMoment_}, {"exp_avg_sq", secondMoment_}, {"step", steps_}};
    }
    return {};
}

} // namespace stagecraft::runtime
