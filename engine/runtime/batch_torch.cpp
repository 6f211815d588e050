// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/batch_torch.h"

#include "engine/runtime/layer_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/roll.h>

namespace stagecraft::runtime {

namespace {

using at::Tensor;

// Far above every layer's place, so that data and weights never share a stream.
constexpr std::uint64_t kInputPlace = std::uint64_t{1} << 40;
constexpr std::uint64_t kTargetPlace = kInputPlace + 1;

// Of the whole batch, from that of one micro-batch.
std::vector<std::int64_t> batchShape(std::vector<std::int64_t> shape, const engine::Plan& plan)
{
    shape.front() *= plan.pipeline.microbatches;
    return shape;
}

at::Generator generatorFor(const engine::Plan& plan, std::uint64_t place)
{
    return at::make_generator<at::CPUGeneratorImpl>(mixedSeed(plan.run.seed, place));
}

std::vector<Tensor> cut(const Tensor& batch, const engine::Plan& plan)
{
    std::vector<Tensor> pieces;
    for (int i = 0; i < plan.pipeline.microbatches; ++i)
        pieces.push_back(batch.narrow(0, std::int64_t{i} * plan.model.microbatchRows, plan.model.microbatchRows));
    return pieces;
}

Tensor inputBatch(const engine::Plan& plan)
{
    at::Generator generator = generatorFor(plan, kInputPlace);
    const std::vector<std::int64_t> shape = batchShape(engine::inputShape(plan.model, plan.model.microbatchRows), plan);
    if (const auto* embedding = std::get_if<engine::Embedding>(&plan.model.layers.front()))
        return at::randint(embedding->vocabulary, shape, generator, at::kLong);
    return at::empty(shape).normal_(0, 1, generator);
}

} // namespace

std::vector<Tensor> makeInputs(const engine::Plan& plan) { return cut(inputBatch(plan), plan); }

std::vector<Tensor> makeTargets(const engine::Plan& plan)
{
    if (plan.model.loss == engine::Loss::CrossEntropy) return cut(at::roll(inputBatch(plan), -1, 1), plan);
    at::Generator generator = generatorFor(plan, kTargetPlace);
    const auto shape = batchShape(engine::outputShape(plan.model, plan.model.microbatchRows), plan);
    return cut(at::empty(shape).normal_(0, 1, generator), plan);
}

Tensor microbatchLoss(engine::Loss kind, const Tensor& output, const Tensor& target, int microbatches)
{
    switch (kind) {
    case engine::Loss::MeanSquaredError: return at::mse_loss(output, target) / microbatches;
    case engine::Loss::CrossEntropy:
        return at::cross_entropy_loss(output.flatten(0, -2), target.flatten()) / microbatches;
    }
    return {};
}

} // namespace stagecraft::runtime
