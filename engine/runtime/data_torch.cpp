// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/data_torch.h"

#include "engine/runtime/precision_torch.h"

#include <ATen/ops/empty.h>

#include <span>

namespace stagecraft::runtime {

using at::Tensor;
using engine::Dataset;

namespace {

// One row after the other into a new tensor of such rows; `shape` is that of one micro-batch.
template <class Number, class Write>
Tensor written(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& rows, const Write& write)
{
    shape.front() = static_cast<std::int64_t>(rows.size());
    Tensor batch = at::empty(shape, std::is_same_v<Number, std::int64_t> ? at::kLong : at::kFloat);
    const auto size = static_cast<std::size_t>(batch.numel()) / rows.size();
    Number* to = batch.mutable_data_ptr<Number>();
    for (const std::int64_t row : rows) {
        write(row, std::span<Number>(to, size));
        to += size;
    }
    return batch;
}

} // namespace

// Of one replica its own part; those of replica 0 come first.
std::vector<std::int64_t> BatchSource::rowsOf(traces::Step step, int replica) const
{
    const std::int64_t own = std::int64_t{plan_.model.microbatchRows} * plan_.pipeline.microbatches;
    const std::vector<std::int64_t> all = data_->rowsOf({.seed = plan_.run.seed, .step = step.value, .rows = own * plan_.machine.replicas},
                                                        engine::inputShape(plan_.model, 1).back());
    if (replica == kAllReplicas) return all;
    return {all.begin() + replica * own, all.begin() + (replica + 1) * own};
}

std::vector<Tensor> BatchSource::inputs(traces::Step step, int replica) const
{
    if (!data_) return makeInputs(plan_, replica);
    const std::vector<std::int64_t> shape = engine::inputShape(plan_.model, plan_.model.microbatchRows);
    const auto write = [this](std::int64_t row, auto to) { data_->writeInputs(row, to); };
    const bool tokens = engine::tokenInput(plan_.model).has_value();
    if (tokens) return cutMicrobatches(written<std::int64_t>(shape, rowsOf(step, replica), write), plan_);
    return cutMicrobatches(written<float>(shape, rowsOf(step, replica), write).to(scalarType(plan_.run.precision)), plan_);
}

std::vector<Tensor> BatchSource::targets(traces::Step step, int replica) const
{
    if (!data_) return makeTargets(plan_, replica);
    const std::vector<std::int64_t> shape = engine::targetShape(plan_.model, plan_.model.microbatchRows);
    const auto write = [this](std::int64_t row, auto to) { data_->writeTargets(row, to); };
    if (plan_.model.loss == engine::Loss::MeanSquaredError) return cutMicrobatches(written<float>(shape, rowsOf(step, replica), write), plan_);
    return cutMicrobatches(written<std::int64_t>(shape, rowsOf(step, replica), write), plan_);
}

} // namespace stagecraft::runtime
