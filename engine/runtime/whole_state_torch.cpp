// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/whole_state_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

namespace {

// The parts follow each other in the order of the replicas, which may be on several devices.
Tensor joined(std::vector<Tensor> parts, const Tensor& as)
{
    for (Tensor& part : parts) part = part.cpu();
    return at::cat(parts).view(as.sizes());
}

} // namespace

std::vector<Tensor> wholeWeights(const Replicas& replicas, const Place& place)
{
    Pipeline& first = *replicas.front();
    if (!first.holds(place) || !first.stage(place).dividesWeights()) return first.weights(place);
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    std::vector<std::vector<Tensor>> parts; // by replica
    for (const auto& replica : replicas) parts.push_back(replica->stage(place).ownParts()->values());
    const std::vector<Tensor> updated = first.stage(place).updated();
    std::vector<Tensor> whole;
    for (std::size_t i = 0; i < updated.size(); ++i) {
        std::vector<Tensor> ofAll;
        for (const auto& ofReplica : parts) ofAll.push_back(ofReplica[i]);
        whole.push_back(joined(std::move(ofAll), updated[i]).to(updated[i].device()));
    }
    return first.stage(place).withSecondUse(std::move(whole));
}

std::vector<WholeState> wholeState(const Replicas& replicas, const Place& place)
{
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    StageModule& first = replicas.front()->stage(place);
    const std::vector<Tensor> updated = first.updated();
    std::vector<WholeState> whole;
    for (const StageOptimizer::State& state : first.optimizer()->state()) whole.push_back({state.name, state.ofParameters});
    if (!first.ownParts()) return whole;
    for (std::size_t s = 0; s < whole.size(); ++s)
        for (std::size_t i = 0; i < updated.size(); ++i) {
            Tensor& tensor = whole[s].ofParameters[i];
            if (tensor.dim() == 0) continue; // the same for all: how many steps there were
            std::vector<Tensor> ofAll;
            for (const auto& replica : replicas) ofAll.push_back(replica->stage(place).optimizer()->state()[s].ofParameters[i]);
            tensor = joined(std::move(ofAll), updated[i]);
        }
    return whole;
}

} // namespace stagecraft::runtime
