// SPDX-License-Identifier: Apache-2.0
//
// Linear, with the weight gradient added straight into .grad where the rows are few. Autograd makes a matrix of the
// weight's size for every micro-batch and then adds it: with 8 rows and a weight of 8 MiB that traffic is three quarters
// of the backward (2.9 ms against 0.8 ms on one core here). From about 64 rows on the product itself takes the time, and
// from 256 rows on the one-step form rounds differently, so there autograd's own way stays. Private to the runtime.
#pragma once

#include <ATen/core/Tensor.h>

namespace stagecraft::runtime {

// Up to so many rows (of all leading dimensions together) the gradient is accumulated in place; the sums are the same to
// the bit: each element's product is complete in a register before it is added. Kernels for narrow matrices add each part of it to the
// sum by itself (seen with up to 11 columns or 3 rows); such a weight's traffic is nothing to save, so it goes autograd's way too. And so
// does a weight of bfloat16, whose products are rounded to it before they are added up in float32.
inline constexpr std::int64_t kFewRows = 64;
inline constexpr std::int64_t kNarrow = 32;

// Of a linear layer: added into .grad where that is there and the rows are few, and then undefined; else to be added by the caller.
// Both as matrices, rows by values.
at::Tensor weightGradient(at::Tensor& weight, const at::Tensor& outputGradient, const at::Tensor& input);

at::Tensor linearIntoGradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

} // namespace stagecraft::runtime
