// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/reference_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/run_messages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <algorithm>

namespace stagecraft::runtime {

using engine::CheckMode;
using engine::GradientCheck;
using traces::Step;

namespace {

double largest(const at::Tensor& values) { return values.numel() == 0 ? 0 : values.abs().max().item<double>(); }

} // namespace

GradientChecker::GradientChecker(const engine::Plan& plan, const engine::Schedule& schedule) : plan_(plan)
{
    for (const auto& rank : schedule.order) {
        for (const traces::Action& action : rank) {
            if (action.kind() == traces::ActionKind::Backward && traces::index(action.stage()) == 0)
                order_.push_back(action.microbatch().value);
        }
    }
}

bool GradientChecker::due(Step step) const
{
    switch (plan_.run.check) {
    case CheckMode::Off: return false;
    case CheckMode::First: return step == Step{0};
    case CheckMode::All: return true;
    }
    return false;
}

void GradientChecker::build()
{
    inputs_ = makeInputs(plan_);
    targets_ = makeTargets(plan_);
    for (std::size_t place = 0; place < plan_.model.layers.size(); ++place) {
        layers_.emplace_back(plan_.model.layers[place], plan_.run.seed, static_cast<int>(place),
                             Accumulation::Autograd);
        const auto& own = layers_.back().parameters();
        parameters_.insert(parameters_.end(), own.begin(), own.end());
    }
}

void GradientChecker::prepare(Step step, Pipeline& pipeline)
{
    const AllocationScope nobody({});
    if (layers_.empty()) build();
    if (step != Step{0}) { // the optimizer has moved the weights
        const at::NoGradGuard noGrad;
        std::size_t next = 0;
        for (int s = 0; s < pipeline.stages(); ++s) {
            for (const at::Tensor& weight : pipeline.stage(traces::Stage{s}).parameters())
                parameters_[next++].copy_(weight);
        }
    }
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
    for (const int i : order_) {
        at::Tensor x = inputs_[static_cast<std::size_t>(i)];
        for (const LayerModule& layer : layers_) x = layer.forward(x);
        microbatchLoss(plan_.model.loss, x, targets_[static_cast<std::size_t>(i)], static_cast<int>(inputs_.size()))
            .backward();
    }
    for (int s = 0; s < pipeline.stages(); ++s) pipeline.stage(traces::Stage{s}).keepGradients(true);
}

void GradientChecker::compare(Step step, Pipeline& pipeline)
{
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    std::size_t next = 0;
    GradientCheck result = GradientCheck::Bitwise;
    for (int s = 0; s < pipeline.stages(); ++s) {
        StageModule& stage = pipeline.stage(traces::Stage{s});
        const std::vector<at::Tensor> gradients = stage.takeGradients();
        stage.keepGradients(false);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            const at::Tensor& expected = parameters_[next++].grad();
            if (at::equal(gradients[i], expected)) continue;
            const double difference = largest(gradients[i] - expected);
            const double scale = largest(expected);
            if (!(outcome_.maxAbsDiff >= difference)) outcome_.maxAbsDiff = difference; // keeps a NaN visible
            const bool near = difference <= kTolerance * scale; // false for NaN
            if (near && result == GradientCheck::Bitwise) result = GradientCheck::Tolerance;
            if (near || result == GradientCheck::Failed) continue;
            result = GradientCheck::Failed;
            outcome_.failure = gradientFailure({s, i, step, difference, scale});
        }
    }
    outcome_.result = std::max(outcome_.result, result); // from Off over Bitwise and Tolerance to Failed
    if (plan_.run.check == CheckMode::First) { // nothing more to compare: the memory goes back
        layers_.clear();
        parameters_.clear();
        inputs_.clear();
        targets_.clear();
    }
}

} // namespace stagecraft::runtime
