// SPDX-License-Identifier: Apache-2.0
//
// A layer of a chosen size (engine::Synthetic): its output is its input, repeated or added up to the right width, plus a mean of its
// weights; beside that it multiplies matrices as often as the plan wants, and keeps as many bytes. Both gradients are those of that sum,
// and cost as much arithmetic as the forward each. Private to the runtime.
//
//   Tensor y = synthetic(layer, x, weights); // (rows, in) -> (rows, out)
#pragma once

#include "engine/model/layers.h"

#include <ATen/core/Tensor.h>

namespace stagecraft::runtime {

at::Tensor synthetic(const engine::Synthetic& layer, const at::Tensor& x, const at::Tensor& weights);

// Multiplies matrices of such numbers until so many FLOPs are done, to the next 32,768 (on a GPU 2,097,152); how many that were.
double spend(double flops, at::TensorOptions of = {});

} // namespace stagecraft::runtime
