// SPDX-License-Identifier: Apache-2.0
//
// Weights and optimizer state on their way into a checkpoint (engine/checkpoint/checkpoint.h) and out of it. A tensor is found by its
// name, which tells the layer's place in the model and never a stage, so a checkpoint fits any partition. Private to the runtime.
//
//   restore(checkpoint, parameterNames(model, layers, firstLayer), weights, &optimizer); // into tensors that are there already
//   Expected<std::filesystem::path> written = saveCheckpoint(replicas, plan, Step{9}); // after the tenth step
//
// What replicas divide is put together for it, and taken apart again. Stages of other processes send what they hold to the one that writes.
#pragma once

#include "engine/checkpoint/checkpoint.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/optimizer_torch.h"
#include "engine/runtime/rank_work.h"

#include <memory>
#include <string>
#include <vector>

namespace stagecraft::runtime {

class Pipeline;
class StageModule;
using Replicas = std::vector<std::unique_ptr<Pipeline>>;

// "layers.3.qkv.weight" and so on, of layers that follow each other from place `first` of the model on; in the order of their parameters.
// A head's matrix that is the embedding's table has the name of that.
std::vector<std::string> parameterNames(const engine::ModelSpec& model, const std::vector<LayerModule>& layers, int first);

// Throws std::runtime_error with the name of a tensor that is missing or does not fit. Without an optimizer only the weights.
void restore(const engine::Checkpoint& checkpoint, const std::vector<std::string>& names, const std::vector<at::Tensor>& weights,
             StageOptimizer* optimizer);
// All stages that are in this process; here a tensor that no layer has does not fit either.
void restore(const engine::Checkpoint& checkpoint, const engine::Partition& partition, Pipeline& pipeline);

// What is kept of a stage.
struct StageState {
    std::vector<std::string> names;  // of what is updated
    std::vector<at::Tensor> weights; // of each
    struct OfOptimizer {
        std::string name;
        std::vector<at::Tensor> ofParameters;
    };
    std::vector<OfOptimizer> optimizer;
};
StageState stateOf(StageModule& stage); // that nothing divides

// The stages of other processes, in the order of the model.
class OtherStates {
public:
    virtual ~OtherStates() = default;
    virtual StageState state(const Place& place, traces::Rank owner) = 0; // throws PreparationStopped where the run ends
};

// An error where it cannot be written, or where weights are no finite numbers any more and a checkpoint of them would be of no use.
engine::Expected<std::filesystem::path> saveCheckpoint(const Replicas& replicas, const engine::Plan& plan, traces::Step step, OtherStates* others = nullptr);

} // namespace stagecraft::runtime
