// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/optimizer_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
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
        const at::Tensor main = parameter.to(at::kFloat); // itself, where it is that
        if (run.precision == engine::Precision::Bf16) main_.push_back(main);
        if (run.moments() >= 1) firstMoment_.push_back(at::zeros_like(main));
        if (run.moments() < 2) continue;
        secondMoment_.push_back(at::zeros_like(main));
        steps_.push_back(at::zeros({}, main.options()));
    }
}

void StageOptimizer::step(double rate)
{
    if (parameters_.empty()) return;
    const at::NoGradGuard noGrad;
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    const std::vector<at::Tensor>& updated = main_.empty() ? parameters_ : main_;
    switch (kind_) {
    case engine::OptimizerKind::AdamW:
        at::_foreach_add_(steps_, 1);
        at::_fused_adamw_(updated, gradients, firstMoment_, secondMoment_, {}, steps_, rate, kBeta1, kBeta2, weightDecay_, kEpsilon,
                          /*amsgrad=*/false, /*maximize=*/false);
        break;
    case engine::OptimizerKind::Adam:
        at::_foreach_add_(steps_, 1);
        at::_fused_adam_(updated, gradients, firstMoment_, secondMoment_, {}, steps_, rate, kBeta1, kBeta2, weightDecay_, kEpsilon,
                         /*amsgrad=*/false, /*maximize=*/false);
        break;
    case engine::OptimizerKind::Momentum:
    case engine::OptimizerKind::Sgd: // without velocities
        at::_fused_sgd_(updated, gradients, firstMoment_, weightDecay_, firstMoment_.empty() ? 0 : momentum_, rate, /*dampening=*/0,
                        /*nesterov=*/false, /*maximize=*/false, first_);
        break;
    }
    first_ = false;
    if (!main_.empty()) at::_foreach_copy_(parameters_, main_);
}

std::vector<StageOptimizer::State> StageOptimizer::state() const
{
    std::vector<State> state;
    if (!main_.empty()) state.push_back({"fp32_param", main_});
    switch (kind_) {
    case engine::OptimizerKind::Sgd: break;
    case engine::OptimizerKind::Momentum: state.push_back({"momentum_buffer", firstMoment_}); break;
    case engine::OptimizerKind::Adam:
    case engine::OptimizerKind::AdamW:
        state.push_back({"exp_avg", firstMoment_});
        state.push_back({"exp_avg_sq", secondMoment_});
        state.push_back({"step", steps_});
        break;
    }
    return state;
}

} // namespace stagecraft::runtime
