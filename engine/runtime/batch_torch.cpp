// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/batch_torch.h"

#include "engine/runtime/layer_torch.h"
#include "engine/runtime/precision_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/roll.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::runtime {

namespace {

using at::Tensor;

// Far above every layer's place, so that data and weights never share a stream.
constexpr std::uint64_t kInputPlace = std::uint64_t{1} << 40;
constexpr std::uint64_t kTargetPlace = kInputPlace + 1;

// Of the whole batch, from that of one micro-batch.
std::vector<std::int64_t> batchShape(std::vector<std::int64_t> shape, const engine::Plan& plan)
{
    shape.front() *= std::int64_t{plan.pipeline.microbatches} * plan.machine.replicas;
    return shape;
}

at::Generator generatorFor(const engine::Plan& plan, std::uint64_t place)
{
    return at::make_generator<at::CPUGeneratorImpl>(mixedSeed(plan.run.seed, place));
}

std::vector<Tensor> cut(Tensor batch, const engine::Plan& plan, int replica)
{
    const std::int64_t rows = std::int64_t{plan.pipeline.microbatches} * plan.model.microbatchRows;
    if (replica != kAllReplicas) batch = batch.narrow(0, replica * rows, rows);
    return cutMicrobatches(batch, plan);
}

Tensor inputBatch(const engine::Plan& plan)
{
    at::Generator generator = generatorFor(plan, kInputPlace);
    const std::vector<std::int64_t> shape = batchShape(engine::inputShape(plan.model, plan.model.microbatchRows), plan);
    if (const std::optional<engine::TokenInput> tokens = engine::tokenInput(plan.model))
        return at::randint(tokens->vocabulary, shape, generator, at::kLong);
    return at::empty(shape).normal_(0, 1, generator).to(scalarType(plan.run.precision));
}

} // namespace

std::vector<Tensor> cutMicrobatches(const Tensor& batch, const engine::Plan& plan)
{
    std::vector<Tensor> pieces;
    for (std::int64_t row = 0; row < batch.size(0); row += plan.model.microbatchRows) pieces.push_back(batch.narrow(0, row, plan.model.microbatchRows));
    return pieces;
}

std::vector<Tensor> ofTheirOwn(std::vector<Tensor> views)
{
    for (Tensor& each : views) each = each.clone();
    return views;
}

std::vector<Tensor> makeInputs(const engine::Plan& plan, int replica) { return cut(inputBatch(plan), plan, replica); }

std::vector<Tensor> makeTargets(const engine::Plan& plan, int replica)
{
    at::Generator generator = generatorFor(plan, kTargetPlace);
    const auto shape = batchShape(engine::targetShape(plan.model, plan.model.microbatchRows), plan);
    if (plan.model.loss == engine::Loss::MeanSquaredError) return cut(at::empty(shape).normal_(0, 1, generator), plan, replica);
    if (shape.size() == 2) return cut(at::roll(inputBatch(plan), -1, 1), plan, replica);
    const std::int64_t classes = engine::outputShape(plan.model, 1).back();
    return cut(at::randint(classes, shape, generator, at::kLong), plan, replica);
}

std::vector<int> sliceLengths(const engine::Plan& plan)
{
    const int slices = plan.pipeline.slices;
    if (slices == 1) return {};
    const int positions = engine::tokenInput(plan.model).value().sequence;
    const engine::CostTable costs = engine::costsOf(plan).value();
    std::vector<int> lengths;
    double cut = 0; // of the sequence, so far
    int taken = 0;
    for (int k = 0; k < slices; ++k) {
        cut += (costs.sliceSize.empty() ? 1.0 : costs.sliceSize[static_cast<std::size_t>(k)]) / slices;
        const int until = std::clamp(static_cast<int>(std::lround(cut * positions)), taken + 1, positions - (slices - 1 - k));
        lengths.push_back(until - taken);
        taken = until;
    }
    return lengths;
}

std::vector<Tensor> cutRows(const std::vector<Tensor>& whole, int parts)
{
    std::vector<Tensor> cut;
    for (const Tensor& each : whole)
        for (int part = 0; part < parts; ++part) cut.push_back(each.narrow(0, part * each.size(0) / parts, each.size(0) / parts));
    return cut;
}

std::vector<Tensor> cutSequences(const std::vector<Tensor>& whole, const std::vector<int>& lengths)
{
    std::vector<Tensor> slices;
    for (const Tensor& each : whole) {
        std::int64_t first = 0;
        for (const int length : lengths) {
            slices.push_back(each.narrow(1, first, length));
            first += length;
        }
    }
    return slices;
}

Tensor shareOfLoss(engine::Loss kind, const Tensor& output, const Tensor& target, double divisor)
{
    switch (kind) {
    case engine::Loss::MeanSquaredError: return at::mse_loss(output.to(at::kFloat), target) / divisor;
    case engine::Loss::CrossEntropy:
        return at::cross_entropy_loss(output.to(at::kFloat).flatten(0, -2), target.flatten()) / divisor;
    }
    return {};
}

} // namespace stagecraft::runtime
