// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/reference_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/clip_norm.h"
#include "engine/runtime/replica_part.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/whole_state_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <limits>

namespace stagecraft::runtime {

using engine::CheckMode;
using engine::GradientCheck;
using traces::Step;

namespace {

struct Difference {
    double largest = 0;          // NaN where a gradient is none and the reference is finite
    double scale = 0;            // largest gradient of the reference
    bool sameButForNaN = true;   // NaN equals NaN
    bool referenceFinite = true; // where it is not there is nothing to compare with
};

double largest(const at::Tensor& values) { return values.numel() == 0 ? 0 : values.max().item<double>(); }

// `whole`: what `expected` is a part of.
Difference differenceOf(const at::Tensor& gradient, const at::Tensor& expected, const at::Tensor& whole)
{
    const at::Tensor finite = expected.isfinite();
    const at::Tensor same = gradient.eq(expected).logical_or(gradient.isnan().logical_and(expected.isnan()));
    return {.largest = largest((gradient - expected).abs().masked_fill(finite.logical_not(), 0)),
            .scale = largest(whole.abs().masked_fill(whole.isfinite().logical_not(), 0)),
            .sameButForNaN = same.all().item<bool>(),
            .referenceFinite = finite.all().item<bool>()};
}

} // namespace

double GradientChecker::toleranceOf(const engine::RunSpec& run)
{
    if (run.precision == engine::Precision::Bf16) return kBf16Tolerance;
    if (run.device == engine::DeviceKind::Cpu) return kTolerance;
    return run.tf32 ? kTf32Tolerance : kGpuTolerance;
}

GradientChecker::GradientChecker(const engine::Plan& plan, const engine::Schedule& schedule, engine::Partition partition, const BatchSource& batches,
                                 const engine::Checkpoint* resume)
    : plan_(plan), schedule_(schedule), partition_(std::move(partition)), resume_(resume), batches_(batches)
{
    const int downwards = schedule.units(schedule.flows().front()) / schedule.slices; // whose micro-batches come first
    for (const Place& place : places(schedule)) {
        const std::vector<int> units = dutiesOf(schedule, place).gradientOrder;
        for (int replica = 0; replica < plan.machine.replicas; ++replica) {
            Order order;
            for (const int unit : units) {
                if (unit % schedule.slices != 0) continue; // the slice that goes back last stands for its micro-batch
                order.push_back(replica * schedule.microbatches + unit / schedule.slices + (place.flow == traces::Flow::Up ? downwards : 0));
            }
            orders_[order].push_back({replica, place});
        }
    }
}

bool GradientChecker::due(Step step) const
{
    switch (plan_.run.check) {
    case CheckMode::Off: return false;
    case CheckMode::First: return step == firstStep();
    case CheckMode::All: return true;
    }
    return false;
}

void GradientChecker::build(const Preparation& preparation)
{
    const std::vector<engine::Layer>& model = plan_.model.layers;
    for (std::size_t place = 0; place < model.size(); ++place) {
        preparation.next({"building the reference", static_cast<int>(place), static_cast<int>(model.size())});
        layers_.emplace_back(model[place], plan_.run.seed, static_cast<int>(place), Accumulation::Autograd,
                             TensorKind{.precision = plan_.run.precision});
    }
    if (plan_.model.tiedEmbeddings) // a leaf for each use: what their gradients are summed from
        tieHead(layers_.back(), model.back(), trainable(layers_.front().parameters()[tiedParameter(model.front())].detach().clone()));
    auto layer = layers_.begin();
    for (const int layers : partition_) {
        std::vector<at::Tensor>& stage = parameters_.emplace_back();
        for (const auto end = layer + layers; layer != end; ++layer)
            stage.insert(stage.end(), layer->parameters().begin(), layer->parameters().end());
    }
    if (!resume_) return;
    std::vector<at::Tensor> all;
    for (const std::vector<at::Tensor>& stage : parameters_) all.insert(all.end(), stage.begin(), stage.end());
    restore(*resume_, parameterNames(plan_.model, layers_, 0), all, nullptr);
}

// Of a tied table: all that its use in the embedding gives, and then all that its use in the head gives.
void GradientChecker::sumTied()
{
    if (!plan_.model.tiedEmbeddings) return;
    at::Tensor& first = expected_.front()[tiedParameter(plan_.model.layers.front())];
    const std::size_t ofHead = layers_.back().parameters().size() - tiedParameter(plan_.model.layers.back());
    at::Tensor& last = expected_.back()[expected_.back().size() - ofHead];
    first = first + last;
    last = first;
}

// The optimizer has moved them.
void GradientChecker::takeWeights(const Replicas& replicas)
{
    const at::NoGradGuard noGrad;
    for (std::size_t s = 0; s < parameters_.size(); ++s) {
        const std::vector<at::Tensor> weights = wholeWeights(replicas, {schedule_.flows().front(), traces::Stage{s}});
        for (std::size_t i = 0; i < weights.size(); ++i) parameters_[s][i].copy_(weights[i]);
    }
}

at::Tensor GradientChecker::forward(int microbatch, Step step, const Preparation& preparation) const
{
    at::Tensor x = inputs_[static_cast<std::size_t>(microbatch)];
    const DataPlace place{.seed = plan_.run.seed, .step = step.value, .microbatch = microbatch, .training = !schedule_.inference()};
    for (const LayerModule& layer : layers_) {
        preparation.goOn();
        x = layer.forward(x, nullptr, &place);
    }
    return x;
}

void GradientChecker::computeGradients(Step step, const Preparation& preparation)
{
    int done = 0;
    int all = 0;
    for (const auto& [order, copies] : orders_) all += static_cast<int>(order.size());
    expected_.assign(parameters_.size(), {});
    for (const auto& [order, copies] : orders_) {
        for (std::vector<at::Tensor>& stage : parameters_)
            for (at::Tensor& parameter : stage) parameter.mutable_grad() = at::Tensor();
        for (const int i : order) {
            preparation.next({"computing the reference gradients", done++, all});
            shareOfLoss(plan_.model.loss, forward(i, step, preparation), targets_[static_cast<std::size_t>(i)], static_cast<double>(inputs_.size()))
                .backward();
        }
        const at::NoGradGuard noGrad;
        for (const Copy& copy : copies) {
            std::vector<at::Tensor>& sums = expected_[traces::index(copy.place.stage)];
            const std::vector<at::Tensor>& parameters = parameters_[traces::index(copy.place.stage)];
            const bool first = sums.empty();
            for (std::size_t i = 0; i < parameters.size(); ++i) {
                if (first) sums.push_back(parameters[i].grad());
                else sums[i] = sums[i] + parameters[i].grad();
            }
        }
    }
    const at::NoGradGuard noGrad;
    sumTied();
    clipExpected();
}

// The expected gradients stand in the order of the model, stage by stage. A tied table is in it twice, and counts with the embedding.
void GradientChecker::clipExpected()
{
    if (plan_.run.clipNorm == 0) return;
    std::vector<at::Tensor> all;
    for (const std::vector<at::Tensor>& stage : expected_) all.insert(all.end(), stage.begin(), stage.end());
    if (plan_.model.tiedEmbeddings)
        all[all.size() - layers_.back().parameters().size() + tiedParameter(plan_.model.layers.back())] = at::Tensor();
    std::vector<double> squares;
    auto next = all.begin();
    for (const LayerModule& layer : layers_) {
        double& sum = squares.emplace_back(0);
        for (const auto end = next + static_cast<std::ptrdiff_t>(layer.parameters().size()); next != end; ++next) {
            if (!next->defined()) continue;
            const auto norm = at::linalg_vector_norm(*next).item<double>();
            sum += norm * norm;
        }
    }
    const double factor = clipFactor(squares, plan_.run.clipNorm);
    for (at::Tensor& gradient : all)
        if (gradient.defined()) gradient.mul_(factor);
}

void GradientChecker::computeOutputs(Step step, const Preparation& preparation)
{
    const at::NoGradGuard noGrad;
    expected_.clear();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        preparation.next({"computing the reference outputs", static_cast<int>(i), static_cast<int>(inputs_.size())});
        expected_.push_back({forward(static_cast<int>(i), step, preparation)});
    }
}

void GradientChecker::prepare(Step step, const Replicas& replicas, const Preparation& preparation)
{
    const AllocationScope nobody({});
    if (schedule_.asynchronous()) {
        if (!reenactment_) reenactment_.emplace(plan_, schedule_, partition_, batches_, resume_, *replicas.front(), preparation);
        return reenactment_->runStep(step, preparation);
    }
    if (layers_.empty()) build(preparation);
    if (inputs_.empty() || batches_.changes()) {
        inputs_ = ofTheirOwn(batches_.inputs(step));
        targets_ = ofTheirOwn(batches_.targets(step));
    }
    if (step != firstStep()) takeWeights(replicas);
    if (schedule_.inference()) computeOutputs(step, preparation);
    else computeGradients(step, preparation);
    for (const auto& pipeline : replicas) pipeline->keepForCheck();
}

bool GradientChecker::agree(const at::Tensor& given, const at::Tensor& expected, const at::Tensor& whole, GradientCheck& result, double& difference,
                            double& scale)
{
    const at::Tensor found = given.cpu();
    if (at::equal(found, expected)) return true;
    const Difference between = differenceOf(found, expected, whole);
    difference = between.largest;
    scale = between.scale;
    outcome_.diverged = outcome_.diverged || !between.referenceFinite;
    if (between.sameButForNaN) return true;
    if (!(outcome_.maxAbsDiff >= between.largest)) outcome_.maxAbsDiff = between.largest; // keeps a NaN visible
    constexpr double kSmallest = std::numeric_limits<float>::min(); // below it a float has fewer bits, and a scaled loss keeps more of them
    const bool near = between.largest <= std::max(toleranceOf(plan_.run) * between.scale, kSmallest); // false for NaN
    if (near && result == GradientCheck::Bitwise) result = GradientCheck::Tolerance;
    return near;
}

// Where replicas divide the update, each knows the sum of its own part alone, and keeps that.
void GradientChecker::compareGradients(Step step, const Replicas& replicas)
{
    const auto count = static_cast<int>(replicas.size());
    const bool divided = dividesUpdate(plan_);
    GradientCheck result = GradientCheck::Bitwise;
    for (int replica = 0; replica < count; ++replica)
        for (const Place& place : places(schedule_)) {
            const std::vector<at::Tensor> gradients = replicas[static_cast<std::size_t>(replica)]->takeGradients(place);
            for (std::size_t i = 0; i < gradients.size(); ++i) {
                const at::Tensor& whole = expected_[traces::index(place.stage)][i];
                const PartRange part = partOf(whole.numel(), replica, count);
                const at::Tensor expected = divided ? whole.reshape(-1).narrow(0, part.begin, part.size()) : whole;
                double difference = 0;
                double scale = 0;
                if (agree(gradients[i], expected, whole, result, difference, scale) || result == GradientCheck::Failed) continue;
                result = GradientCheck::Failed;
                outcome_.failure = gradientFailure({place.stage.value, i, step, difference, scale});
            }
        }
    outcome_.result = std::max(outcome_.result, result); // from Off over Bitwise and Tolerance to Failed
}

void GradientChecker::compareOutputs(Step step, const Replicas& replicas)
{
    GradientCheck result = GradientCheck::Bitwise;
    std::size_t microbatch = 0;
    for (const auto& pipeline : replicas)
        for (const traces::Flow flow : schedule_.flows()) {
            for (const at::Tensor& output : pipeline->takeOutputs({flow, traces::Stage{schedule_.stages() - 1}})) {
                double difference = 0;
                double scale = 0;
                const bool same = agree(output, expected_[microbatch].front(), expected_[microbatch].front(), result, difference, scale);
                if (!same && result != GradientCheck::Failed) {
                    result = GradientCheck::Failed;
                    outcome_.failure = outputFailure({static_cast<int>(microbatch), step, difference, scale});
                }
                ++microbatch;
            }
        }
    outcome_.result = std::max(outcome_.result, result);
}

void GradientChecker::compareWeights(Step step, Pipeline& pipeline)
{
    GradientCheck result = GradientCheck::Bitwise;
    for (const Place& place : places(schedule_)) {
        const std::vector<at::Tensor> found = pipeline.weights(place);
        std::vector<at::Tensor> expected = reenactment_->weights(place.stage);
        for (at::Tensor& weight : expected) weight = weight.cpu();
        for (std::size_t i = 0; i < found.size(); ++i) {
            double difference = 0;
            double scale = 0;
            if (agree(found[i], expected[i], expected[i], result, difference, scale) || result == GradientCheck::Failed) continue;
            result = GradientCheck::Failed;
            outcome_.failure = weightFailure({place.stage.value, i, step, difference, scale});
        }
    }
    outcome_.result = std::max(outcome_.result, result);
}

void GradientChecker::compare(Step step, const Replicas& replicas)
{
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    if (schedule_.asynchronous()) compareWeights(step, *replicas.front()); // of which there is one alone
    else if (schedule_.inference()) compareOutputs(step, replicas);
    else compareGradients(step, replicas);
    expected_.clear();
    if (plan_.run.check == CheckMode::First) { // nothing more to compare: the memory goes back
        reenactment_.reset();
        layers_.clear();
        parameters_.clear();
        inputs_.clear();
        targets_.clear();
    }
}

} // namespace stagecraft::runtime
