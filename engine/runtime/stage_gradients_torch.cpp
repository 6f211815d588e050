// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a stage, from the last backward of a step on: what they add up to, whose they are, and the update.
#include "engine/runtime/stage_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/run_messages.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

namespace {

// LibTorch's own takes no empty list, and a stage of dropout alone has no gradient.
void multiply(const std::vector<Tensor>& tensors, double factor)
{
    if (!tensors.empty()) at::_foreach_mul_(tensors, factor);
}

} // namespace

// Layers whose input needs no gradient are said with those before them.
void StageModule::sayFinal(int layer)
{
    while (finalFrom_ > layer) finalGradients_(--finalFrom_);
}

void StageModule::endGradients(int unit)
{
    if (!finalGradients_ || !isLast(unit)) return;
    sayFinal(0);
    finalFrom_ = static_cast<int>(layers_.size());
}

std::vector<std::vector<std::int64_t>> StageModule::parameterSizes() const
{
    std::vector<std::vector<std::int64_t>> sizes;
    for (const LayerModule& layer : layers_) {
        sizes.emplace_back();
        for (const Tensor& parameter : layer.parameters()) sizes.back().push_back(parameter.numel());
    }
    return sizes;
}

std::vector<std::span<std::byte>> memoryOf(const std::vector<Tensor>& tensors)
{
    std::vector<std::span<std::byte>> memory;
    for (const Tensor& tensor : tensors) memory.emplace_back(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
    return memory;
}

std::vector<Tensor> StageModule::wholeGradients(const std::vector<std::size_t>& parameters)
{
    const at::NoGradGuard noGrad;
    const AllocationScope scope({.ledger = ledger_, .memory = MemoryClass::Gradients});
    std::vector<Tensor> whole;
    for (const std::size_t i : parameters) {
        Tensor& gradient = parameters_[i].mutable_grad();
        if (!gradient.defined()) gradient = at::zeros_like(parameters_[i], gradientType(parameters_[i]));
        if (!gradient.is_contiguous()) {
            Tensor dense = gradient.contiguous();
            beforeGivingBack();
            gradient = std::move(dense);
        }
        whole.push_back(gradient);
    }
    return whole;
}

std::vector<Tensor> StageModule::values(const std::vector<std::size_t>& parameters) const
{
    std::vector<Tensor> values;
    for (const std::size_t i : parameters) values.push_back(parameters_[i]);
    return values;
}

void StageModule::markGradients()
{
    for (const Tensor& gradient : stash_ ? stash_->gradients() : gradients())
        if (gradient.defined()) reclass(gradient.storage().data_ptr(), MemoryClass::Gradients);
}

std::vector<Tensor> StageModule::gradients() const
{
    if (parts_ && parts_->keepsOwnGradients()) return parts_->gradients();
    std::vector<Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    return gradients;
}

void StageModule::setGradients(std::vector<Tensor> gradients)
{
    beforeGivingBack();
    if (parts_ && parts_->keepsOwnGradients()) {
        parts_->setGradients(std::move(gradients));
        return;
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = std::move(gradients[i]);
    markGradients();
}

std::vector<Tensor> StageModule::settled() const
{
    if (stash_) return stash_->gradients();
    return withoutSecondUse(gradients());
}

void StageModule::settleGradients()
{
    const at::NoGradGuard noGrad;
    settled_ = true;
    if (secondUse_) {
        std::vector<Tensor> gradients = this->gradients();
        gradients[*tied_].add_(gradients[*secondUse_]);
        gradients[*secondUse_] = Tensor();
        setGradients(std::move(gradients));
    }
    if (lossScale_ == 1) return;
    const std::vector<Tensor> all = settled();
    multiply(all, 1 / lossScale_); // a power of two: exact
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].isfinite().all().item<bool>()) throw std::domain_error(overflownGradient(names_[i], lossScale_));
}

std::vector<double> StageModule::squaredNorms() const
{
    std::vector<double> squares;
    std::size_t parameter = 0;
    for (const LayerModule& layer : layers_) {
        double& sum = squares.emplace_back(0);
        for (const std::size_t end = parameter + layer.parameters().size(); parameter < end; ++parameter) {
            if (parameter == ofHead_) continue; // the embedding has it
            const auto norm = at::linalg_vector_norm(parameters_[parameter].grad()).item<double>();
            sum += norm * norm;
        }
    }
    return squares;
}

void StageModule::shrinkGradients(double factor)
{
    const at::NoGradGuard noGrad;
    if (factor < 1) multiply(settled(), factor);
    keepOwnGradients();
}

void StageModule::optimize(double rate)
{
    if (!settled_) settleGradients();
    settled_ = false;
    if (stash_) {
        setParameters(layers_, stash_->newest()); // they would hold on to those of the last forward
        stash_->update(*optimizer_, rate);
        parameters_ = stash_->newest();
        return;
    }
    if (parts_) optimizer_->setParameters(parts_->valuesWithGradients());
    optimizer_->step(rate);
    if (parts_) optimizer_->setParameters({});
    dropGradients();
}

void StageModule::dropGradients()
{
    beforeGivingBack();
    kept_.clear();
    for (std::size_t i = 0; keepGradients_ && i < parameters_.size(); ++i) {
        const std::size_t from = i == secondUse_ ? *tied_ : i;
        kept_.push_back(parts_ ? parts_->gradient(from) : parameters_[from].grad());
        disown(kept_.back().storage().data_ptr());
    }
    if (parts_) parts_->setGradients({});
    for (Tensor& parameter : parameters_) parameter.mutable_grad() = Tensor();
}

std::vector<Tensor> StageModule::withSecondUse(std::vector<Tensor> updated) const
{
    if (secondUse_) updated.insert(updated.begin() + static_cast<std::ptrdiff_t>(*secondUse_), updated[*tied_]);
    return updated;
}

std::vector<Tensor> StageModule::withoutSecondUse(std::vector<Tensor> all) const
{
    if (secondUse_) all.erase(all.begin() + static_cast<std::ptrdiff_t>(*secondUse_));
    return all;
}

void StageModule::takeRoomForWeights()
{
    if (dividesWeights()) parts_->takeRoomForWeights();
}

void StageModule::giveUpWeights()
{
    if (dividesWeights()) parts_->giveUpWeights();
}

void StageModule::keepOwnGradients()
{
    if (dividesGradients_) parts_->keepOwnGradients();
}

// A mean over all micro-batches of the step, or where the weights change within it over those of an update; of a part of a micro-batch
// by its size.

} // namespace stagecraft::runtime
