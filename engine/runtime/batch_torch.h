// SPDX-License-Identifier: Apache-2.0
//
// Data that is made from the seed: one batch, used again in every step, in views of one micro-batch each (data_torch.h gives a run its
// batches). How batches are cut. And the loss. Private to the runtime.
#pragma once

#include "engine/plan/plan.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace stagecraft::runtime {

// The whole batch has the micro-batches of all replicas, those of replica 0 first. A replica's are views into it: who is to hold no more
// than its own clones them.
inline constexpr int kAllReplicas = -1;
// What enters the first stage: N(0,1) in the run's precision, or uniform tokens where the model takes them.
std::vector<at::Tensor> makeInputs(const engine::Plan& plan, int replica = kAllReplicas);
// What the last stage compares with: N(0,1) of the output's shape in float32; or the next token, or of each row a uniform class.
std::vector<at::Tensor> makeTargets(const engine::Plan& plan, int replica = kAllReplicas);

// In views of one micro-batch each.
std::vector<at::Tensor> cutMicrobatches(const at::Tensor& batch, const engine::Plan& plan);

// Each in memory of its own, where it begins at a bound that all have in common: the last bits of a matrix product may depend on where its
// operands lie, and a stage is to get the same ones as the reference.
std::vector<at::Tensor> ofTheirOwn(std::vector<at::Tensor> views);

// Positions of each slice, where the plan cuts sequences; they add up to the sequence, and none is empty. Precondition: the model takes
// sequences of at least as many positions.
std::vector<int> sliceLengths(const engine::Plan& plan);
// Every tensor in views of so many parts with equal rows, one after the other. Precondition: the rows can be divided so.
std::vector<at::Tensor> cutRows(const std::vector<at::Tensor>& whole, int parts);
// Every tensor in views of its slices, one after the other.
std::vector<at::Tensor> cutSequences(const std::vector<at::Tensor>& whole, const std::vector<int>& lengths);

// The mean over what is given, divided: by the number of micro-batches, so that the losses of a step sum to the batch's mean, and so
// do the gradients; of a slice by more, as it is a part of its micro-batch.
// In float32.
at::Tensor shareOfLoss(engine::Loss kind, const at::Tensor& output, const at::Tensor& target, double divisor);

} // namespace stagecraft::runtime
