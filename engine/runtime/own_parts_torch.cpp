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

// A view that counts no changes: a graph may hold on to a parameter whose memory comes back.
Tensor partIn(const Tensor& whole, const PartRange& part) { return whole.data().view(-1).narrow(0, part.begin, part.size()); }

// On the CPU not by LibTorch's operations: those would start threads where this is not a rank's.
void copyValues(const Tensor& to, const Tensor& from)
{
    if (from.numel() == 0) return;
    if (to.is_cpu()) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    else to.copy_(from);
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

// A parameter after the other, so that there is never more than one part too much.
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
        weights_.push_back(at::empty({own.size()}, parameters_[i].options()));
        copyValues(weights_.back(), partIn(parameters_[i], own));
        parameters_[i].storage().set_data_ptr({nullptr, parameters_[i].device()});
    }
}

void OwnParts::takeRoomForWeights()
{
    if (weights_.empty()) return;
    const AllocationScope scope({.ledger = spec_.ledger, .memory = MemoryClass::Weights});
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (i == spec_.secondUse) continue;
        c10::Allocator* const allocator = c10::GetAllocator(parameters_[i].device().type());
        parameters_[i].storage().set_data_ptr(allocator->allocate(parameters_[i].storage().nbytes())); // may throw
        const Tensor part = std::exchange(weights_[i], {});
        copyValues(partIn(parameters_[i], rangeOf(parameters_[i])), part);
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
        gradients_.push_back(at::empty({own.size()}, whole.options()));
        copyValues(gradients_.back(), partIn(whole, own));
        if (spec_.letOtherWait) spec_.letOtherWait();
        whole = Tensor();
        // on the books once what it is cut from is off them: this is beside the rank's own work, and would be in the peaks of that
        rebook(gradients_.back().storage().data_ptr(), {.ledger = spec_.ledger, .memory = MemoryClass::Gradients});
    }
}

} // namespace stagecraft::runtime
