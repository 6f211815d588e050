// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/stage_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/checkpoint_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

StageModule::StageModule(const Spec& spec, MemoryLedger* ledger, const Preparation& preparation)
    : duties_(spec.duties), ledger_(ledger),
      watches_(!duties_.inference && (duties_.moves || spec.plan.run.activations == engine::ActivationAccount::SavedTensors)), loss_(spec.plan.model.loss),
      microbatches_(spec.plan.pipeline.microbatches * spec.plan.machine.replicas), lengths_(spec.lengths),
      firstData_{.seed = spec.plan.run.seed, .microbatch = spec.firstMicrobatch, .training = !spec.duties.inference}, rows_(spec.plan.model.microbatchRows),
      caches_(static_cast<std::size_t>(lengths_.empty() ? 0 : duties_.units / duties_.slices)),
      inFlight_(static_cast<std::size_t>(duties_.units)), losses_(inFlight_.size()), device_(spec.device), letOtherWait_(spec.letOtherWait), unread_(device_.is_cpu() ? 0 : inFlight_.size()),
      lossScale_(spec.plan.run.lossScale),
      told_(inFlight_.size()), outputs_(inFlight_.size())
{
    {
        const AllocationScope scope({.ledger = ledger, .memory = MemoryClass::Weights});
        const auto first = spec.plan.model.layers.begin() + spec.firstLayer;
        splitsGraph_ = duties_.splits && !std::all_of(first, first + spec.layers, canDefer);
        const Accumulation accumulation = splitsGraph_      ? Accumulation::Autograd
                                          : duties_.splits ? Accumulation::Deferred
                                                           : Accumulation::InPlace;
        for (int place = spec.firstLayer; place < spec.firstLayer + spec.layers; ++place) {
            preparation.next({"building the stages", place, static_cast<int>(spec.plan.model.layers.size())});
            layers_.emplace_back(spec.plan.model.layers[static_cast<std::size_t>(place)], spec.plan.run.seed, place, accumulation,
                                 TensorKind{device_, spec.plan.run.precision});
        }
        tieLayers(spec);
        finalFrom_ = static_cast<int>(layers_.size());
        for (const LayerModule& layer : layers_) parameters_.insert(parameters_.end(), layer.parameters().begin(), layer.parameters().end());
    }
    names_ = parameterNames(spec.plan.model, layers_, spec.firstLayer);
    if (secondUse_) names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(*secondUse_));
    dividesGradients_ = dividesGradients(spec.plan);
    if (dividesUpdate(spec.plan))
        parts_.emplace(parameters_,
                       OwnParts::Spec{.replica = spec.replica, .replicas = spec.plan.machine.replicas, .ledger = ledger, .secondUse = secondUse_, .letOtherWait = letOtherWait_});
    giveUpWeights(); // until the first UNSHARD
    if (duties_.inference) return;
    const AllocationScope scope({.ledger = ledger, .memory = MemoryClass::Optimizer});
    optimizer_.emplace(spec.plan.run, parts_ ? parts_->values() : updated());
    if (parts_) optimizer_->setParameters({}); // until an update: they would keep memory that is to go
    if (duties_.asynchronous()) stash_.emplace(duties_, parameters_);
}

void StageModule::tieLayers(const Spec& spec)
{
    if (!spec.plan.model.tiedEmbeddings) return;
    const engine::Layer& embedding = spec.plan.model.layers.front();
    const engine::Layer& head = spec.plan.model.layers.back();
    const bool hasFirst = spec.firstLayer == 0;
    const bool hasLast = spec.firstLayer + spec.layers == static_cast<int>(spec.plan.model.layers.size());
    if (hasFirst) tied_ = tiedParameter(embedding);
    if (!hasLast) return;
    std::size_t before = 0; // parameters of the other layers
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) before += layers_[i].parameters().size();
    ofHead_ = before + tiedParameter(head);
    (hasFirst ? secondUse_ : tied_) = ofHead_;
    if (hasFirst) {
        tieHead(layers_.back(), head, trainable(layers_.front().parameters()[tiedParameter(embedding)].detach()));
        return;
    }
    const LayerModule first(embedding, spec.plan.run.seed, 0, Accumulation::Autograd, TensorKind{device_, spec.plan.run.precision});
    tieHead(layers_.back(), head, first.parameters()[tiedParameter(embedding)]);
}

double StageModule::lossDivisor(int unit) const
{
    const double microbatches = duties_.asynchronous() ? duties_.group[static_cast<std::size_t>(unit)] : microbatches_;
    if (lengths_.empty()) return microbatches * duties_.slices; // parts of equal rows
    const double whole = std::accumulate(lengths_.begin(), lengths_.end(), 0.0);
    return microbatches * whole / lengths_[static_cast<std::size_t>(unit % duties_.slices)];
}

DataPlace StageModule::dataPlace(int unit, traces::Step step) const
{
    DataPlace place = firstData_;
    place.step = step.value;
    place.microbatch += unit / duties_.slices;
    const int part = unit % duties_.slices;
    if (!lengths_.empty()) {
        place.positions = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
        place.firstPosition = std::accumulate(lengths_.begin(), lengths_.begin() + part, std::int64_t{0});
    } else if (duties_.slices > 1) {
        place.rows = rows_;
        place.firstRow = part * rows_ / duties_.slices;
    }
    return place;
}

Tensor StageModule::runLayers(int unit, InFlight& kept, traces::Step step)
{
    // What adds to a gradient runs on the stream on which it was first asked for, which of a weight would be that of an earlier unit, with
    // all that is under way there. So each graph has its own.
    if (letOtherWait_)
        for (const Tensor& parameter : parameters_) torch::autograd::impl::set_grad_accumulator(parameter, {});
    Tensor x = kept.input;
    const DataPlace place = dataPlace(unit, step);
    const auto forward = [&](std::size_t layer, SlicePass* pass) {
        watchGradients(unit, x, static_cast<int>(layer));
        x = layers_[layer].forward(x, pass, &place);
        if (splitsGraph_ && layer == 0 && !inputs_.empty() && x.requires_grad()) kept.firstOutput = torch::autograd::impl::gradient_edge(x);
    };
    if (lengths_.empty()) {
        for (std::size_t layer = 0; layer < layers_.size(); ++layer) forward(layer, nullptr);
        return x;
    }
    const int slice = unit % duties_.slices;
    std::vector<KeysAndValues>& caches = cachesOf(unit);
    caches.resize(layers_.size());
    SlicePass pass{.slice = slice, .firstPosition = static_cast<int>(place.firstPosition), .caches = caches};
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) forward(layer, &pass);
    kept.cuts.clear();
    for (const auto& [made, leaf] : pass.own)
        if (made.requires_grad()) kept.cuts.push_back({torch::autograd::impl::gradient_edge(made), leaf});
    return x;
}

// What enters a layer gets its gradient when the layer's own are added up: autograd runs what adds to a leaf before all else.
void StageModule::watchGradients(int unit, const Tensor& layerInput, int layer)
{
    if (!finalGradients_ || layer == 0 || !isLast(unit) || !layerInput.requires_grad()) return;
    layerInput.register_hook([this, layer](const Tensor&) {
        if (GradientQueue* const later = GradientQueue::current())
            later->add({}, [this, layer](const std::vector<Tensor>&) { sayFinal(layer); });
        else sayFinal(layer);
    });
}

// Through the layers; notes the graph's root.
Tensor StageModule::run(int unit, InFlight& kept, traces::Step step)
{
    Tensor x = runLayers(unit, kept, step);
    if (targets_.empty()) {
        if (x.requires_grad()) kept.root = torch::autograd::impl::gradient_edge(x);
        return x.detach();
    }
    const auto i = static_cast<std::size_t>(unit);
    outputShape_.assign(x.sizes().begin(), x.sizes().end());
    if (keepOutputs_) { // for the check, which is nothing that the run holds
        outputs_[i] = x.detach();
        disown(outputs_[i].storage().data_ptr());
    }
    const Tensor loss = shareOfLoss(loss_, x, targets_[i], lossDivisor(unit));
    if (device_.is_cpu()) {
        losses_[i] = loss.item<double>() * shareOfStep(i);
    } else {
        unread_[i] = loss.detach();
        disown(unread_[i].storage().data_ptr()); // a number, for a person
    }
    if (loss.requires_grad()) kept.root = torch::autograd::impl::gradient_edge(loss);
    return {};
}

// Of an update's loss.
double StageModule::shareOfStep(std::size_t unit) const
{
    return duties_.asynchronous() ? static_cast<double>(duties_.group[unit]) / microbatches_ : 1;
}

void StageModule::readLosses()
{
    if (unread_.empty() || !unread_.front().defined()) return;
    const AllocationScope nobody({});
    const Tensor all = at::stack(unread_).cpu();
    for (std::size_t i = 0; i < losses_.size(); ++i) losses_[i] = static_cast<double>(all.const_data_ptr<float>()[i]) * shareOfStep(i);
    std::fill(unread_.begin(), unread_.end(), Tensor());
}

Tensor StageModule::forward(int unit, Tensor input, traces::Step step)
{
    InFlight& kept = at(unit);
    const Bytes before = watches_ ? bookedActivations() : 0;
    if (duties_.moves && input.defined()) rebook(input.storage().data_ptr(), {.ledger = ledger_, .memory = MemoryClass::Activations});
    kept.input = inputs_.empty() ? std::move(input) : inputs_[static_cast<std::size_t>(unit)];
    if (stash_) {
        kept.weights = stash_->take(unit);
        setParameters(layers_, kept.weights->weights);
    }
    const at::AutoGradMode mode(!duties_.inference && !isRecomputed(unit));
    Tensor output = runWatched(unit, kept, step);
    if (watches_) {
        if (booked_.size() == inFlight_.size()) booked_.clear(); // a new step
        booked_.push_back(bookedActivations() - before);
    }
    if (duties_.inference) {
        kept = {};
        if (!lengths_.empty() && unit % duties_.slices + 1 == duties_.slices) cachesOf(unit).clear();
    } else if (output.defined()) {
        if (duties_.moves) output = givenAway(std::move(output), kept);
        output.requires_grad_();
    }
    return output;
}

void StageModule::recompute(int unit, traces::Step step)
{
    InFlight& kept = at(unit);
    if (kept.weights) setParameters(layers_, kept.weights->weights);
    runWatched(unit, kept, step);
}

Tensor StageModule::evaluate(Tensor x, const std::vector<Tensor>& weights)
{
    const at::NoGradGuard noGrad;
    setParameters(layers_, weights);
    x = x.to(device_);
    for (const LayerModule& layer : layers_) x = layer.forward(x);
    setParameters(layers_, parameters_);
    return x;
}

Tensor StageModule::goBack(int unit, InFlight& work, Tensor outputGradient, SplitBackward* later)
{
    if (!targets_.empty()) {
        // the same as a loss that is so much larger, and the loss that is told stays what it is
        if (!lossGradient_.defined()) lossGradient_ = at::full({}, lossScale_, at::TensorOptions(device_));
        outputGradient = lossGradient_;
    }
    torch::autograd::edge_list roots{std::exchange(work.root, {})};
    torch::autograd::variable_list gradients{std::move(outputGradient)};
    for (Cut& cut : work.cuts) {
        if (!cut.leaf.grad().defined()) continue; // no slice behind it
        roots.push_back(cut.made);
        gradients.push_back(std::move(cut.leaf.mutable_grad()));
    }
    work.cuts.clear();
    if (later) {
        SplitBackward::Task task{std::move(roots), std::move(gradients), {work.input}, std::exchange(work.firstOutput, {})};
        if (!lengths_.empty())
            for (const KeysAndValues& cache : cachesOf(unit))
                for (const std::vector<Tensor>* leaves : {&cache.keys, &cache.values})
                    task.inputs.insert(task.inputs.end(), leaves->begin(), leaves->end());
        later->inputGradients(std::move(task));
    } else {
        // The engine itself instead of autograd::backward(): that needs the output tensor, which is not kept here.
        torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false, /*create_graph=*/false,
                                                              /*accumulate_grad=*/true);
    }
    if (!lengths_.empty())
        for (KeysAndValues& cache : cachesOf(unit))
            for (std::vector<Tensor>* leaves : {&cache.keys, &cache.values}) {
                if (leaves->empty()) continue; // no block
                leaves->pop_back();            // the own ones: nobody reads them any more
                for (const Tensor& leaf : *leaves) reclass(leaf.grad().storage().data_ptr(), MemoryClass::Activations);
            }
    const Tensor input = std::move(work.input);
    if (!inputs_.empty()) return {};
    return std::move(input.mutable_grad());
}

Tensor StageModule::backward(int unit, Tensor outputGradient)
{
    InFlight work = std::exchange(at(unit), {});
    Tensor gradient = goBack(unit, work, std::move(outputGradient));
    if (work.weights) stash_->collect(*work.weights);
    markGradients();
    return gradient;
}

namespace {

// Each block once, without the run's data.
Bytes bytesForWeights(const GradientQueue& queue, const void* data)
{
    std::map<const void*, Bytes> blocks;
    queue.forEachKept([&](const Tensor& tensor) { blocks[tensor.storage().data()] = static_cast<Bytes>(tensor.storage().nbytes()); });
    blocks.erase(data);
    return std::accumulate(blocks.begin(), blocks.end(), Bytes{0}, [](Bytes sum, const auto& block) { return sum + block.second; });
}

} // namespace

Tensor StageModule::inputGrad(int unit, Tensor outputGradient)
{
    InFlight& work = at(unit);
    const auto blockOf = [](const Tensor& tensor) { return tensor.defined() ? tensor.storage().data() : nullptr; };
    const std::array<const void*, 2> handed{blockOf(work.input), blockOf(outputGradient)};
    Tensor gradient;
    {
        const GradientQueue::Scope later(work.weightGradients);
        gradient = goBack(unit, work, std::move(outputGradient), splitsGraph_ ? &work.split : nullptr);
    }
    // what the backward made and W needs is kept like an activation; what was handed over stays in the books of who made it
    const auto book = [&](const Tensor& tensor) {
        const bool own = std::find(handed.begin(), handed.end(), blockOf(tensor)) == handed.end();
        if (own) reclass(tensor.storage().data_ptr(), MemoryClass::Activations);
    };
    work.weightGradients.forEachKept(book);
    work.split.forEachKept(book);
    if (watches_ && !splitsGraph_) { // of a graph that is split, all that it saved stays until W
        work.saved = {};
        work.forWeights = bytesForWeights(work.weightGradients, inputs_.empty() ? nullptr : handed[0]);
        most_.forWeights = std::max(most_.forWeights, work.forWeights);
    }
    return gradient;
}

void StageModule::weightGrad(int unit)
{
    InFlight work = std::exchange(at(unit), {});
    work.split.weightGradients();
    work.weightGradients.run(); // of a graph that was split, nothing but the news that gradients are final
    if (work.weights) stash_->collect(*work.weights);
    markGradients();
}

std::vector<std::int64_t> StageModule::outputShape() const
{
    std::vector<std::int64_t> shape = outputShape_;
    if (shape.empty()) return shape;
    const auto units = static_cast<std::int64_t>(inFlight_.size());
    shape.front() *= lengths_.empty() ? units : units / duties_.slices;
    if (!lengths_.empty()) shape[1] = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    return shape;
}

} // namespace stagecraft::runtime
