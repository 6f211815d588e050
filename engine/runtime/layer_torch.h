// SPDX-License-Identifier: Apache-2.0
//
// One layer of a plan's model as LibTorch operations. Its weights follow from the seed and the layer's place in the model
// alone, so every partition starts from the same ones. Private to the runtime.
#pragma once

#include "engine/model/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stagecraft::runtime {

// How weight gradients of linear layers come into being: as autograd does it, or by linear_torch.h. The reference of the
// check takes autograd's way, so that it stays independent of the other.
enum class Accumulation : std::uint8_t { Autograd, InPlace };

class LayerModule {
public:
    // `place`: index of the layer in the whole model. Allocates where the caller's AllocationScope says.
    LayerModule(const engine::Layer& layer, std::uint64_t seed, int place, Accumulation accumulation);

    [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;
    [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }

private:
    engine::Layer layer_;
    Accumulation accumulation_;
    std::vector<at::Tensor> parameters_; // leaves that require gradients; their order is the layer's own, see the .cpp
};

// Mixes seed and place to a generator's seed (splitmix64): neighbours must not give related streams.
std::uint64_t mixedSeed(std::uint64_t seed, std::uint64_t place);

} // namespace stagecraft::runtime
