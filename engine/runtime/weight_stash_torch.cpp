// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/weight_stash_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/precision_torch.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

WeightStash::WeightStash(const StageDuties& duties, std::vector<Tensor> first)
    : version_(duties.version), updates_(duties.updates), newest_(std::make_shared<WeightVersion>(WeightVersion{0, std::move(first)}))
{
    beginStep();
}

void WeightStash::beginStep()
{
    newest_->number = 0;
    toCome_.assign(static_cast<std::size_t>(updates_) + 1, 0);
    for (const int version : version_) ++toCome_[static_cast<std::size_t>(version)];
}

std::shared_ptr<WeightVersion> WeightStash::take(int unit)
{
    const int number = version_[static_cast<std::size_t>(unit)];
    std::shared_ptr<WeightVersion> taken = newest_;
    for (const std::shared_ptr<WeightVersion>& older : older_)
        if (older->number == number) taken = older;
    --toCome_[static_cast<std::size_t>(number)];
    letGo();
    return taken;
}

void WeightStash::letGo()
{
    std::erase_if(older_, [&](const std::shared_ptr<WeightVersion>& version) { return toCome_[static_cast<std::size_t>(version->number)] == 0; });
}

void WeightStash::collect(WeightVersion& version)
{
    const at::NoGradGuard noGrad;
    if (gradients_.empty()) gradients_.resize(version.weights.size());
    for (std::size_t i = 0; i < version.weights.size(); ++i) {
        Tensor gradient = std::move(version.weights[i].mutable_grad());
        version.weights[i].mutable_grad() = Tensor();
        if (!gradients_[i].defined()) gradients_[i] = std::move(gradient);
        else gradients_[i].add_(gradient);
    }
}

void WeightStash::update(StageOptimizer& optimizer, double rate)
{
    const bool inFlight = newest_.use_count() > 1;
    const bool wanted = toCome_[static_cast<std::size_t>(newest_->number)] > 0;
    const int next = newest_->number + 1;
    if (inFlight || wanted) {
        auto made = std::make_shared<WeightVersion>();
        {
            const at::NoGradGuard noGrad;
            for (const Tensor& weight : newest_->weights) {
                made->weights.push_back(trainable(weight.detach().clone()));
                reclass(made->weights.back().storage().data_ptr(), MemoryClass::Weights);
                reclass(weight.storage().data_ptr(), MemoryClass::Versions);
            }
        }
        if (wanted) older_.push_back(newest_);
        newest_ = std::move(made);
    }
    newest_->number = next;
    for (std::size_t i = 0; i < gradients_.size(); ++i) newest_->weights[i].mutable_grad() = gradients_[i];
    optimizer.setParameters(newest_->weights);
    optimizer.step(rate);
    for (Tensor& weight : newest_->weights) weight.mutable_grad() = Tensor();
    gradients_.clear();
    if (next == updates_) beginStep();
}

} // namespace stagecraft::runtime
