// SPDX-License-Identifier: Apache-2.0
//
// One layer of a plan's model as LibTorch operations. Its weights follow from the seed and the layer's place in the model
// alone, so every partition starts from the same ones. Private to the runtime.
#pragma once

#include "engine/model/model.h"
#include "engine/runtime/data_place.h"
#include "engine/runtime/precision_torch.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// How weight gradients of linear layers come into being: as autograd does it, or by linear_torch.h. The reference of the
// check takes autograd's way, so that it stays independent of the other.
// Deferred: by deferred_torch.h, so that a W can make them later. For layers that know how; a stage with others splits its graph
// (split_torch.h), which autograd's way is right for.
enum class Accumulation : std::uint8_t { Autograd, InPlace, Deferred };
bool canDefer(const engine::Layer& layer);

class ScriptedModule;

// Keys and values of one block for one micro-batch whose sequences come in slices: leaves by slice, whose gradients come from the
// slices behind (Seq1F1B, arXiv 2406.03488 sec. 3.2).
struct KeysAndValues {
    std::vector<at::Tensor> keys;   // (rows, key heads, positions of the slice, values of a head), turned where positions are rotary
    std::vector<at::Tensor> values;
};

// One slice on its way through the layers of a stage.
struct SlicePass {
    int slice = 0;                         // of its micro-batch
    int firstPosition = 0;
    std::vector<KeysAndValues>& caches;    // of the stage's blocks, in their order
    std::vector<std::pair<at::Tensor, at::Tensor>> own = {}; // what this pass made, each with its leaf in the cache
    std::size_t nextBlock = 0;
};

// Of a layer that the plan describes whole; one from a file names its parameters itself.
std::vector<std::string> parameterNames(const engine::Layer& layer);

class LayerModule {
public:
    // `place`: index of the layer in the whole model. Allocates where the caller's AllocationScope says. Throws what a person can
    // read where the layer comes from a file that does not do.
    LayerModule(const engine::Layer& layer, std::uint64_t seed, int place, Accumulation accumulation, TensorKind kind = {});

    // `pass`: where sequences come in slices. `at`: without it nothing is left to chance, as in an evaluation.
    [[nodiscard]] at::Tensor forward(const at::Tensor& x, SlicePass* pass = nullptr, const DataPlace* at = nullptr) const;
    [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
    // Within the layer: "qkv.weight"; in the order of parameters().
    [[nodiscard]] std::vector<std::string> parameterNames() const;
    // Other ones of the same shapes: another version of the weights.
    void setParameters(std::vector<at::Tensor> parameters);

private:
    engine::Layer layer_;
    std::uint64_t place_; // in the model
    Accumulation accumulation_;
    std::vector<at::Tensor> parameters_; // leaves that require gradients; their order is the layer's own, see the .cpp
    std::shared_ptr<ScriptedModule> script_; // of a layer from a file
};

// The parameters of the layers, one after the other, become these.
void setParameters(std::vector<LayerModule>& layers, const std::vector<at::Tensor>& parameters);

// Of the layer's parameters, the one that tied embeddings share (engine/model/tied.h): an embedding's table, a head's matrix.
std::size_t tiedParameter(const engine::Layer& layer);
// The head's matrix becomes `table`.
void tieHead(LayerModule& head, const engine::Layer& layer, at::Tensor table);

// Mixes seed and place to a generator's seed (splitmix64): neighbours must not give related streams.
std::uint64_t mixedSeed(std::uint64_t seed, std::uint64_t place);

} // namespace stagecraft::runtime
