// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/precision_torch.h"
#include "engine/runtime/reference_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

Reenactment::Reenactment(const engine::Plan& plan, const engine::Schedule& schedule, const engine::Partition& partition, const BatchSource& batches,
                         const engine::Checkpoint* resume, const Pipeline& pipeline, const Preparation& preparation)
    : plan_(plan), batches_(batches)
{
    int layer = 0;
    for (std::size_t s = 0; s < partition.size(); ++s) {
        const Place place{traces::Flow::Single, traces::Stage{s}};
        StageState& stage = stages_.emplace_back(pipeline.computesOn(place), dutiesOf(schedule, place));
        const c10::OptionalDeviceGuard guard(stage.device);
        std::vector<Tensor>& first = stage.versions.emplace_back();
        for (int i = 0; i < partition[s]; ++i, ++layer) {
            preparation.next({"building the reference", layer, static_cast<int>(plan.model.layers.size())});
            stage.layers.emplace_back(plan.model.layers[static_cast<std::size_t>(layer)], plan.run.seed, layer, Accumulation::Autograd,
                                      TensorKind{stage.device, plan.run.precision});
            const auto& own = stage.layers.back().parameters();
            first.insert(first.end(), own.begin(), own.end());
        }
        stage.optimizer = std::make_unique<StageOptimizer>(plan.run, first);
        if (resume) restore(*resume, parameterNames(plan.model, stage.layers, layer - partition[s]), first, stage.optimizer.get());
    }
}

// Micro-batches go by versions that others make, so the order is found on the way.
void Reenactment::runStep(traces::Step step, const Preparation& preparation)
{
    if (inputs_.empty() || batches_.changes()) {
        inputs_ = ofTheirOwn(batches_.inputs(step));
        targets_ = ofTheirOwn(batches_.targets(step));
    }
    for (StageState& stage : stages_) {
        stage.versions.erase(stage.versions.begin(), stage.versions.end() - 1);
        stage.collected = 0;
    }
    std::vector<int> left(inputs_.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
    while (!left.empty()) {
        const auto next = std::find_if(left.begin(), left.end(), [&](int i) { return canTake(i); });
        if (next == left.end()) throw std::logic_error("the versions of the weights wait for each other");
        preparation.next({"computing the reference weights", static_cast<int>(inputs_.size() - left.size()), static_cast<int>(inputs_.size())});
        take(*next, step);
        left.erase(next);
    }
}

// Each stage has the version that the micro-batch goes by.
bool Reenactment::canTake(int microbatch) const
{
    return std::all_of(stages_.begin(), stages_.end(), [&](const StageState& stage) {
        const auto version = static_cast<std::size_t>(stage.duties.version[static_cast<std::size_t>(microbatch)]);
        return version < stage.versions.size();
    });
}

void Reenactment::take(int microbatch, traces::Step step)
{
    const auto i = static_cast<std::size_t>(microbatch);
    Tensor x = inputs_[i];
    const DataPlace place{.seed = plan_.run.seed, .step = step.value, .microbatch = microbatch};
    for (StageState& stage : stages_) {
        const c10::OptionalDeviceGuard guard(stage.device);
        x = x.to(stage.device);
        setParameters(stage.layers, stage.versions[static_cast<std::size_t>(stage.duties.version[i])]);
        for (const LayerModule& layer : stage.layers) x = layer.forward(x, nullptr, &place);
    }
    shareOfLoss(plan_.model.loss, x, targets_[i].to(x.device()), stages_.front().duties.group[i]).backward();
    for (StageState& stage : stages_) {
        std::vector<Tensor>& own = stage.waiting[microbatch];
        for (Tensor& weight : stage.versions[static_cast<std::size_t>(stage.duties.version[i])])
            own.push_back(std::exchange(weight.mutable_grad(), Tensor()));
        collect(stage, plan_.run.rateOf(step.value));
    }
}

// Each stage adds up in its own order.
void Reenactment::collect(StageState& stage, double rate)
{
    const std::vector<int>& order = stage.duties.gradientOrder;
    while (stage.collected < order.size()) {
        const auto next = stage.waiting.extract(order[stage.collected]);
        if (!next) return;
        if (stage.gradients.empty()) {
            stage.gradients = std::move(next.mapped());
        } else {
            const at::NoGradGuard noGrad;
            for (std::size_t w = 0; w < stage.gradients.size(); ++w) stage.gradients[w] = stage.gradients[w] + next.mapped()[w];
        }
        ++stage.collected;
        const bool complete = stage.collected == order.size() || stage.duties.updateOf(order[stage.collected]) != stage.duties.updateOf(next.key());
        if (complete) update(stage, rate);
    }
}

void Reenactment::update(StageState& stage, double rate)
{
    std::vector<Tensor> next;
    {
        const at::NoGradGuard noGrad;
        for (const Tensor& weight : stage.versions.back()) next.push_back(trainable(weight.detach().clone()));
    }
    for (std::size_t w = 0; w < next.size(); ++w) next[w].mutable_grad() = std::exchange(stage.gradients[w], Tensor());
    stage.gradients.clear();
    stage.optimizer->setParameters(next);
    stage.optimizer->step(rate);
    for (Tensor& weight : next) weight.mutable_grad() = Tensor();
    stage.versions.push_back(std::move(next));
}

} // namespace stagecraft::runtime
