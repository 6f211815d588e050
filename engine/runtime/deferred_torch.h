// SPDX-License-Identifier: Apache-2.0
//
// The layers whose weight gradients can wait for a W of their own (gradient_queue_torch.h). Forward and gradients are those of
// at::linear, at::layer_norm and at::embedding, to the bit; without a queue the gradients are made at once, as autograd does.
// What waits: the input of a linear layer and the gradient of its output; of an embedding the tokens and that gradient; of a norm
// the sums themselves, which are small. Private to the runtime.
#pragma once

#include <ATen/core/Tensor.h>

namespace stagecraft::runtime {

at::Tensor deferredLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor deferredNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor deferredEmbedding(const at::Tensor& weight, const at::Tensor& tokens);

} // namespace stagecraft::runtime
