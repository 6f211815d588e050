// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/reference_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/run_messages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>

#include <algorithm>

namespace stagecraft::runtime {

using engine::CheckMode;
using engine::GradientCheck;
using traces::Step;

namespace {

struct Difference {
    double largest = 0;          // NaN where a gradient is none and the reference is finite
    double scale = 0;            // largest gradient of the reference
    bool sameButForNaN = true;   // NaN equals NaN
    bool referenceFinite = true; // where it is not there is nothing to compare with
};

double largest(const at::Tensor& values) { return values.numel() == 0 ? 0 : values.max().item<double>(); }

Difference differenceOf(const at::Tensor& gradient, const at::Tensor& expected)
{
    const at::Tensor finite = expected.isfinite();
    const at::Tensor same = gradient.eq(expected).logical_or(gradient.isnan().logical_and(expected.isnan()));
    return {.largest = largest((gradient - expected).abs().masked_fill(finite.logical_not(), 0)),
            .scale = largest(expected.abs().masked_fill(finite.logical_not(), 0)),
            .sameButForNaN = same.all().item<bool>(),
            .referenceFinite = finite.all().item<bool>()};
}

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

void GradientChecker::build(const Preparation& preparation)
{
    inputs_ = makeInputs(plan_);
    targets_ = makeTargets(plan_);
    for (std::size_t place = 0; place < plan_.model.layers.size(); ++place) {
        preparation.next({"building the reference", static_cast<int>(place), static_cast<int>(plan_.model.layers.size())});
        layers_.emplace_back(plan_.model.layers[place], plan_.run.seed, static_cast<int>(place),
                             Accumulation::Autograd);
        const auto& own = layers_.back().parameters();
        parameters_.insert(parameters_.end(), own.begin(), own.end());
    }
}

void GradientChecker::prepare(Step step, Pipeline& pipeline, const Preparation& preparation)
{
    const AllocationScope nobody({});
    if (layers_.empty()) build(preparation);
    if (step != Step{0}) { // the optimizer has moved the weights
        const at::NoGradGuard noGrad;
        std::size_t next = 0;
        for (int s = 0; s < pipeline.stages(); ++s) {
            for (const at::Tensor& weight : pipeline.stage(traces::Stage{s}).parameters())
                parameters_[next++].copy_(weight);
        }
    }
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
    for (std::size_t done = 0; done < order_.size(); ++done) {
        preparation.next({"computing the reference gradients", static_cast<int>(done), static_cast<int>(order_.size())});
        const int i = order_[done];
        at::Tensor x = inputs_[static_cast<std::size_t>(i)];
        for (const LayerModule& layer : layers_) {
            preparation.goOn();
            x = layer.forward(x);
        }
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
            const Difference found = differenceOf(gradients[i], expected);
            outcome_.diverged = outcome_.diverged || !found.referenceFinite;
            if (found.sameButForNaN) continue;
            if (!(outcome_.maxAbsDiff >= found.largest)) outcome_.maxAbsDiff = found.largest; // keeps a NaN visible
            const bool near = found.largest <= kTolerance * found.scale; // false for NaN
            if (near && result == GradientCheck::Bitwise) result = GradientCheck::Tolerance;
            if (near || result == GradientCheck::Failed) continue;
            result = GradientCheck::Failed;
            outcome_.failure = gradientFailure({s, i, step, found.largest, found.scale});
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
