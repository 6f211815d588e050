// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/own_parts_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <cstring>

namespace stagecraft::runtime {

using at::Tensor;

namespace {

constexpr auto kValue = static_cast<std::int64_t>(sizeof(float));

std::byte* bytesAt(const Tensor& tensor, std::int64_t value)
{
    return static_cast<std::byte*>(tensor.storage().mutable_data()) + value * kValue;
}

} // namespace

OwnParts::OwnParts(std::vector<Tensor> parameters, const Spec& spec) : parameters_(std::move(parameters)), spec_(spec) {}

PartRange OwnParts::rangeOf(const Tensor& whole) const { return partOf(whole.numel(), spec_.replica, spec_.replicas); }

Tensor OwnParts::ownOf(const Tensor& whole) const
{
    const PartRange own = rangeOf(whole);
    return whole.detach().view(-1).narrow(0, own.begin, own.size());
}

std::vector<Tensor> OwnParts::values() const
{
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (i != spec_.secondUse) values.push_back(i < weights_.size() && weights_[i].defined() ? weights_[i].detach() : ownOf(parameters_[i]));
    return values;
}

Tensor OwnParts::gradient(std::size_t parameter) const
{
    return keepsOwnGradients() ? gradients_[parameter] : ownOf(parameters_[parameter].grad());
}

std::vector<Tensor> OwnParts::valuesWithGradients() const
{
    std::vector<Tensor> values = this->values();
    std::size_t i = 0;
    for (Tensor& value : values) {
        if (i == spec_.secondUse) ++i;
        value.mutable_grad() = gradient(i++);
    }
    return values;
}

// A parameter after the other, so that there is never more than one part too much. Copied here and not by LibTorch's operations: those
// would start threads where this is not a rank's.
void OwnParts::giveUpWeights()
{
    if (!weights_.empty()) return;
    const AllocationScope scope({.ledger = spec_.ledger, .memory = MemoryClass::Weights});
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (i == spec_.secondUse) {
            weights_.emplace_back();
            continue;
        }
        const PartRange own = rangeOf(parameters_[i]);
        weights_.push_back(at::empty({own.size()}));
        if (own.size() > 0) std::memcpy(bytesAt(weights_.back(), 0), bytesAt(parameters_[i], own.begin), static_cast<std::size_t>(own.size() * kValue));
        parameters_[i].storage().set_data_ptr({nullptr, parameters_[i].device()});
    }
}

void OwnParts::takeRoomForWeights()
{
    if (weights_.empty()) return;
    const AllocationScope scope({.ledger = spec_.ledger, .memory = MemoryClass::Weights});
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (i == spec_.secondUse) continue;
        const PartRange own = rangeOf(parameters_[i]);
        parameters_[i].storage().set_data_ptr(c10::GetAllocator(c10::DeviceType::CPU)->allocate(parameters_[i].storage().nbytes())); // may throw
        const Tensor part = std::exchange(weights_[i], {});
        if (own.size() > 0) std::memcpy(bytesAt(parameters_[i], own.begin), bytesAt(part, 0), static_cast<std::size_t>(own.size() * kValue));
    }
    weights_.clear();
}

void OwnParts::keepOwnGradients()
{
    if (keepsOwnGradients()) return;
    const at::NoGradGuard noGrad;
    const AllocationScope nobody({});
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const PartRange own = rangeOf(parameters_[i]);
        Tensor& whole = parameters_[i].mutable_grad();
        if (!whole.defined()) { // of a second use, which is with the first one already
            gradients_.emplace_back();
            continue;
        }
        gradients_.push_back(at::empty({own.size()}));
        if (own.size() > 0)
            std::memcpy(gradients_.back().mutable_data_ptr(), whole.const_data_ptr<float>() + own.begin, static_cast<std::size_t>(own.size() * kValue));
        whole = Tensor();
        // on the books once what it is cut from is off them: this is beside the rank's own work, and would be in the peaks of that
        rebook(gradients_.back().storage().data_ptr(), {.ledger = spec_.ledger, .memory = MemoryClass::Gradients});
    }
}

} // namespace stagecraft::runtime
