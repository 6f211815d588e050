// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/stage_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"

#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace stagecraft::runtime {

using at::Tensor;

StageModule::StageModule(const Spec& spec, MemoryLedger* ledger, const Preparation& preparation)
    : loss_(spec.plan.model.loss), inFlight_(static_cast<std::size_t>(spec.plan.pipeline.microbatches)),
      losses_(inFlight_.size())
{
    {
        const AllocationScope scope({.ledger = ledger, .memory = MemoryClass::Weights});
        for (int place = spec.firstLayer; place < spec.firstLayer + spec.layers; ++place) {
            preparation.next({"building the stages", place, static_cast<int>(spec.plan.model.layers.size())});
            layers_.emplace_back(spec.plan.model.layers[static_cast<std::size_t>(place)], spec.plan.run.seed, place,
                                 Accumulation::InPlace);
            const auto& own = layers_.back().parameters();
            parameters_.insert(parameters_.end(), own.begin(), own.end());
        }
    }
    const AllocationScope scope({.ledger = ledger, .memory = MemoryClass::Optimizer});
    optimizer_.emplace(spec.plan.run.optimizer, spec.plan.run.learningRate, parameters_);
}

Tensor StageModule::forward(int microbatch, Tensor input)
{
    const auto i = static_cast<std::size_t>(microbatch);
    if (!inputs_.empty()) input = inputs_[i];
    Tensor x = input;
    for (const LayerModule& layer : layers_) x = layer.forward(x);

    InFlight& kept = inFlight_[i];
    kept.input = std::move(input);
    if (targets_.empty()) {
        kept.root = torch::autograd::impl::gradient_edge(x);
        return x.detach().requires_grad_();
    }
    outputShape_.assign(x.sizes().begin(), x.sizes().end());
    const Tensor loss = microbatchLoss(loss_, x, targets_[i], static_cast<int>(inFlight_.size()));
    losses_[i] = loss.item<double>();
    kept.root = torch::autograd::impl::gradient_edge(loss);
    return {};
}

Tensor StageModule::backward(int microbatch, Tensor outputGradient)
{
    InFlight work = std::move(inFlight_[static_cast<std::size_t>(microbatch)]);
    inFlight_[static_cast<std::size_t>(microbatch)] = {};
    if (!targets_.empty()) {
        if (!one_.defined()) one_ = at::ones({});
        outputGradient = one_;
    }
    // The engine itself instead of autograd::backward(): that needs the output tensor, which is not kept here.
    torch::autograd::Engine::get_default_engine().execute({work.root}, {std::move(outputGradient)},
                                                          /*keep_graph=*/false, /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
    for (const Tensor& parameter : parameters_) {
        if (parameter.grad().defined()) reclass(parameter.grad().storage().mutable_data(), MemoryClass::Gradients);
    }
    if (!inputs_.empty()) return {};
    return std::move(work.input.mutable_grad());
}

void StageModule::optimize()
{
    optimizer_->step();
    kept_.clear();
    for (Tensor& parameter : parameters_) {
        if (keepGradients_) {
            disown(parameter.grad().storage().mutable_data());
            kept_.push_back(std::move(parameter.mutable_grad()));
        }
        parameter.mutable_grad() = Tensor();
    }
}

double StageModule::stepLoss() const
{
    double sum = 0;
    for (const double loss : losses_) sum += loss;
    return sum;
}

std::vector<std::int64_t> StageModule::outputShape() const
{
    std::vector<std::int64_t> shape = outputShape_;
    if (!shape.empty()) shape.front() *= static_cast<std::int64_t>(inFlight_.size());
    return shape;
}

} // namespace stagecraft::runtime
