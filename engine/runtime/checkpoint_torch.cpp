// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/checkpoint_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/pipeline_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/whole_state_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

namespace stagecraft::runtime {

using at::Tensor;
using engine::Checkpoint;
using engine::Error;
using engine::Expected;
using engine::TensorData;
using engine::TensorFile;
using engine::TensorInfo;
using engine::TensorType;

namespace {

TensorType typeOf(const Tensor& tensor)
{
    switch (tensor.scalar_type()) {
    case at::kFloat: return TensorType::F32;
    case at::kDouble: return TensorType::F64;
    case at::kHalf: return TensorType::F16;
    case at::kBFloat16: return TensorType::BF16;
    case at::kLong: return TensorType::I64;
    case at::kInt: return TensorType::I32;
    case at::kShort: return TensorType::I16;
    case at::kChar: return TensorType::I8;
    case at::kByte: return TensorType::U8;
    case at::kBool: return TensorType::Bool;
    default: throw std::runtime_error(std::string("a checkpoint cannot hold a tensor of type ") + at::toString(tensor.scalar_type()));
    }
}

TensorInfo infoOf(const std::string& name, const Tensor& tensor) { return {name, typeOf(tensor), {tensor.sizes().begin(), tensor.sizes().end()}}; }

[[noreturn]] void throwMisfit(const TensorFile& file, const std::string& what)
{
    throw std::runtime_error(file.path().string() + " does not fit the plan's model: " + what +
                             ". Go on with the model that it was made with (the plan in its checkpoint.json), or begin anew without run.resume");
}

void load(const TensorFile& file, const std::string& name, const Tensor& into)
{
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end()) throwMisfit(file, "it has no tensor " + name);
    const TensorInfo wanted = infoOf(name, into);
    if (found->second.info != wanted) throwMisfit(file, "its tensor " + name + " is " + describe(found->second.info) + ", the model's " + describe(wanted));
    const at::NoGradGuard noGrad;
    const bool direct = into.is_contiguous() && into.is_cpu();
    const Tensor whole = direct ? into : at::empty(into.sizes(), into.options().device(at::kCPU));
    const auto read = file.read(name, {static_cast<std::byte*>(whole.mutable_data_ptr()), static_cast<std::size_t>(whole.nbytes())});
    if (!read.ok()) throw std::runtime_error(read.error().message);
    if (!whole.isfinite().all().item<bool>())
        throw std::runtime_error(file.path().string() + ": its tensor " + name +
                                 " has values that are no finite numbers. Go on from an earlier checkpoint, or begin anew without run.resume");
    if (!direct) into.copy_(whole);
}

std::string stateName(const std::string& parameter, std::string_view what) { return parameter + '.' + std::string(what); }

// What goes into one file; holds on to the tensors until it is written.
class Collection {
public:
    void add(const std::string& name, const Tensor& tensor) { tensors_.emplace_back(name, tensor.cpu().contiguous()); }
    [[nodiscard]] std::vector<TensorData> data() const
    {
        std::vector<TensorData> data;
        for (const auto& [name, tensor] : tensors_) data.push_back({infoOf(name, tensor), tensor.const_data_ptr()});
        return data;
    }

private:
    std::vector<std::pair<std::string, Tensor>> tensors_;
};

} // namespace

std::vector<std::string> parameterNames(const engine::ModelSpec& model, const std::vector<LayerModule>& layers, int first)
{
    const auto inModel = [](std::size_t place, const std::string& name) { return "layers." + std::to_string(place) + '.' + name; };
    std::vector<std::string> names;
    auto place = static_cast<std::size_t>(first);
    for (const LayerModule& layer : layers) {
        const std::size_t before = names.size();
        for (const std::string& name : layer.parameterNames()) names.push_back(inModel(place, name));
        if (++place == model.layers.size() && model.tiedEmbeddings)
            names[before + tiedParameter(model.layers.back())] = inModel(0, parameterNames(model.layers.front())[tiedParameter(model.layers.front())]);
    }
    return names;
}

void restore(const Checkpoint& checkpoint, const std::vector<std::string>& names, const std::vector<Tensor>& weights, StageOptimizer* optimizer)
{
    for (std::size_t i = 0; i < names.size(); ++i) {
        load(checkpoint.weights, names[i], weights[i]);
        if (!optimizer) continue;
        for (const StageOptimizer::State& state : optimizer->state())
            load(checkpoint.optimizer, stateName(names[i], state.name), state.ofParameters[i]);
    }
    if (optimizer) optimizer->goOn();
}

namespace {

// Of a replica that has a part of it.
void restoreParts(const Checkpoint& checkpoint, StageModule& stage)
{
    const std::vector<Tensor> updated = stage.updated();
    for (std::size_t i = 0; i < updated.size(); ++i)
        for (const StageOptimizer::State& state : stage.optimizer()->state()) {
            const std::string name = stateName(stage.updatedNames()[i], state.name);
            if (state.ofParameters[i].dim() == 0) {
                load(checkpoint.optimizer, name, state.ofParameters[i]);
                continue;
            }
            const Tensor whole = at::empty(updated[i].sizes());
            load(checkpoint.optimizer, name, whole);
            state.ofParameters[i].copy_(stage.ownParts()->ownOf(whole));
        }
    stage.optimizer()->goOn();
}

// Whether "layers.3.qkv.weight" is for another process to judge: none of the stages here has the layer.
bool isElsewhere(const std::string& name, const engine::Partition& partition, const Pipeline& pipeline)
{
    int layer = -1;
    const std::string_view start = "layers.";
    if (name.starts_with(start)) std::from_chars(name.data() + start.size(), name.data() + name.size(), layer);
    if (layer < 0) return false;
    int last = 0;
    for (std::size_t s = 0; s < partition.size(); ++s) {
        last += partition[s];
        if (layer >= last) continue;
        const std::vector<traces::Flow> flows = pipeline.schedule().flows();
        return std::none_of(flows.begin(), flows.end(), [&](traces::Flow flow) { return pipeline.holds({flow, traces::Stage{s}}); });
    }
    return false;
}

} // namespace

void restore(const Checkpoint& checkpoint, const engine::Partition& partition, Pipeline& pipeline)
{
    const at::NoGradGuard noGrad;
    std::set<std::string> known;
    for (const Place& place : places(pipeline.schedule())) {
        if (!pipeline.holds(place)) continue;
        StageModule& stage = pipeline.stage(place);
        const RankDevice::Scope here = pipeline.deviceOf(place).enter();
        stage.takeRoomForWeights();
        restore(checkpoint, stage.updatedNames(), stage.updated(), stage.ownParts() ? nullptr : stage.optimizer());
        stage.giveUpWeights();
        if (stage.ownParts() && stage.optimizer()) restoreParts(checkpoint, stage);
        known.insert(stage.updatedNames().begin(), stage.updatedNames().end());
    }
    for (const auto& [name, entry] : checkpoint.weights.tensors())
        if (!known.contains(name) && !isElsewhere(name, partition, pipeline)) throwMisfit(checkpoint.weights, "its tensor " + name + " is in no layer of it");
}

StageState stateOf(StageModule& stage)
{
    StageState all{stage.updatedNames(), stage.updated(), {}};
    for (const StageOptimizer::State& each : stage.optimizer()->state()) all.optimizer.push_back({std::string(each.name), each.ofParameters});
    return all;
}

namespace {

StageState wholeOf(const Replicas& replicas, const Place& place)
{
    StageModule& stage = replicas.front()->stage(place);
    StageState all{stage.updatedNames(), stage.withoutSecondUse(wholeWeights(replicas, place)), {}};
    for (WholeState& each : wholeState(replicas, place)) all.optimizer.push_back({std::string(each.name), std::move(each.ofParameters)});
    return all;
}

} // namespace

Expected<std::filesystem::path> saveCheckpoint(const Replicas& replicas, const engine::Plan& plan, traces::Step step, OtherStates* others)
{
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    Collection weights;
    Collection state;
    std::set<std::string> known;
    const engine::Schedule& schedule = replicas.front()->schedule();
    for (std::size_t s = 0; s < schedule.stageToRank.size(); ++s) {
        const Place place{schedule.flows().front(), traces::Stage{s}}; // a copy in the other direction has the same
        const StageState stage = replicas.front()->holds(place) ? wholeOf(replicas, place) : others->state(place, schedule.rankOf(place.flow, place.stage));
        for (std::size_t i = 0; i < stage.names.size(); ++i) {
            const std::string& name = stage.names[i];
            if (!known.insert(name).second) continue; // a table that the last stage has as well
            if (!stage.weights[i].isfinite().all().item<bool>()) return Error{divergedWeight(name, plan.run.learningRate)};
            weights.add(name, stage.weights[i]);
            for (const StageState::OfOptimizer& each : stage.optimizer) state.add(stateName(name, each.name), each.ofParameters[i]);
        }
    }
    return engine::writeCheckpoint(plan.run.checkpoint, {.step = step.value + 1, .plan = plan, .weights = weights.data(), .optimizer = state.data()});
}

} // namespace stagecraft::runtime
