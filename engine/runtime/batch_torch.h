// SPDX-License-Identifier: Apache-2.0
//
// The data of a run, from its seed: one batch, used again in every step, in views of one micro-batch each. And the loss.
// Private to the runtime.
#pragma once

#include "engine/plan/plan.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace stagecraft::runtime {

// What enters the first stage: N(0,1), or uniform tokens where the model starts with an embedding.
std::vector<at::Tensor> makeInputs(const engine::Plan& plan);
// What the last stage compares with: N(0,1) of the output's shape, or the next token.
std::vector<at::Tensor> makeTargets(const engine::Plan& plan);

// Of one micro-batch, divided by their number: the losses of a step sum to the batch's mean, and so do the gradients.
at::Tensor microbatchLoss(engine::Loss kind, const at::Tensor& output, const at::Tensor& target, int microbatches);

} // namespace stagecraft::runtime
